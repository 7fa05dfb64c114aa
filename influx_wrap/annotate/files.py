"""A clip's metadata file made into its file of intrinsics: what ``influx-calib annotate`` does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from influx_wrap.annotate.clip import AnnotatedClip, annotate_clip
from influx_wrap.annotate.preview import MOST_WIDTH_PX, Preview, plan_preview
from influx_wrap.errors import InputError
from influx_wrap.formats.groundtruth import write_ground_truth, write_ground_truth_csv
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.formats.lut import read_table
from influx_wrap.lut.lookup import make_lookup
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.model.table import Table


@dataclass(frozen=True)
class PreviewRequest:
    """The clip's video, the preview to write, and how wide it may be in pixels."""

    video: Path
    path: Path
    width_px: int = MOST_WIDTH_PX


@dataclass(frozen=True)
class AnnotateRequest:
    """What is annotated, and how.

    as_csv     CSV with sigmas, not InFlux's JSON
    scheme     of the interpolation
    fill_gaps  so many missing frames in a row are interpolated at most
    """

    metadata: Path
    table: Path
    out: Path
    as_csv: bool
    scheme: str
    fill_gaps: int = 0
    preview: PreviewRequest | None = None


@dataclass(frozen=True, eq=False)
class Annotated:
    """The annotated clip, and its preview, planned but not yet written."""

    clip: AnnotatedClip
    preview: Preview | None


def annotate(
    metadata: str | Path, table: Table, *, scheme: str = DEFAULT, fill_gaps: int = 0
) -> AnnotatedClip:
    """Intrinsics of every frame of a clip, from the file of its lens metadata.

    scheme     of the interpolation
    fill_gaps  so many missing frames in a row are interpolated at most

    Example:
        clip = iw.annotate("metadata.csv", iw.read_table("lut.json"))
        clip.write("gt.json")
        print(clip.truth.intrinsics[:, 0], clip.truth.sigma[:, 0])
    """
    told = read_metadata(Path(metadata))
    try:
        return annotate_clip(told, make_lookup(table, scheme), fill=fill_gaps)
    except InputError as error:
        raise InputError(f"{metadata}: {error}") from None


def annotate_file(request: AnnotateRequest) -> Annotated:
    """Find the intrinsics of all frames, and write them."""
    table = read_table(request.table)
    lookup = make_lookup(table, request.scheme)
    told = read_metadata(request.metadata)
    planned = None
    if request.preview is not None:
        asked = request.preview
        planned = plan_preview(asked.video, asked.path, table.image_size, asked.width_px)
    try:
        clip = annotate_clip(
            told,
            lookup,
            fill=request.fill_gaps,
            with_sigma=request.as_csv or planned is not None,
        )
    except InputError as error:
        raise InputError(f"{request.metadata}: {error}") from None
    write = write_ground_truth_csv if request.as_csv else write_ground_truth
    write(request.out, clip.truth)
    return Annotated(clip, planned)
