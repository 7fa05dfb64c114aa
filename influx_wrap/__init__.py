"""influx_wrap: per-frame camera intrinsics for zoom lenses with metadata."""

from influx_wrap.compute import arithmetic

__version__ = "0.1.0"

arithmetic.settle()
