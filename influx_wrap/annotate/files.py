"""A clip's file of lens metadata made into intrinsics."""

from __future__ import annotations

from pathlib import Path

from influx_wrap.annotate.clip import AnnotatedClip, annotate_clip
from influx_wrap.errors import InputError
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.model.table import Table


def annotate(
    metadata: str | Path,
    table: Table,
    *,
    scheme: str = DEFAULT,
    fill_gaps: int = 0,
    with_sigma: bool = True,
) -> AnnotatedClip:
    """Intrinsics of every frame of a clip, from the file of its lens metadata.

    scheme      of the interpolation
    fill_gaps   so many missing frames in a row are interpolated at most
    with_sigma  whether standard deviations are wanted, too

    Example:
        clip = iw.annotate("metadata.csv", iw.read_table("lut.json"))
        clip.write("gt.json")
        print(clip.truth.intrinsics[:, 0], clip.truth.sigma[:, 0])
    """
    told = read_metadata(Path(metadata))
    try:
        lookup = make_lookup(table, scheme)
        return annotate_clip(told, lookup, fill=fill_gaps, with_sigma=with_sigma)
    except InputError as error:
        raise InputError(f"{metadata}: {error}") from None
