"""influx_wrap: per-frame camera intrinsics for zoom lenses with metadata."""

__version__ = "0.1.0"
