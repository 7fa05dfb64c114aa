"""A clip's file of lens metadata made into intrinsics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from influx_wrap.annotate.clip import AnnotatedClip, annotate_clip
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.model.rig import ReportedRig, RigComparison, compare_rig
from influx_wrap.model.table import Table


def annotate(
    metadata: str | Path,
    table: Table,
    *,
    scheme: str = DEFAULT,
    by_covariance: bool | None = None,
    fill_gaps: int = 0,
    with_sigma: bool = True,
    any_lens: bool = False,
    catalogue: str | Path | None = None,
) -> AnnotatedClip:
    """Intrinsics of every frame of a clip, from the file of its lens metadata.

    scheme      of the interpolation
    by_covariance   whether experiments count as far as their covariances say, or all alike;
                without it all alike for the scheme ``paper`` only
    fill_gaps   so many missing frames in a row are interpolated at most
    with_sigma  whether standard deviations are wanted, too
    any_lens    go on although the metadata are of another lens, camera or picture size than the
                table, which is refused else; ``truth.filmed_with.doubts`` keeps what they said
    catalogue   folder of your own lenses and cameras, which says what metadata call them

    Example:
        clip = iw.annotate("metadata.csv", iw.read_table("lut.json"))
        clip.write("gt.json")
        print(clip.truth.intrinsics[:, 0], clip.truth.sigma[:, 0])
    """
    told = read_metadata(Path(metadata))
    compared = _compare(told.rig, table, None if catalogue is None else Path(catalogue))
    if compared.contradictions and not any_lens:
        raise InputError(
            f"{metadata} is not of the table's lens and camera: "
            f"{'; '.join(compared.contradictions)}. Take the table of what it was filmed with, or "
            "insist with --any-lens (any_lens=True in Python)."
        )
    try:
        clip = annotate_clip(
            told,
            make_lens_model(table, scheme, by_covariance=by_covariance),
            fill=fill_gaps,
            with_sigma=with_sigma,
            doubts=compared.contradictions,
        )
    except InputError as error:
        raise InputError(f"{metadata}: {error}") from None
    assert clip.truth.filmed_with is not None
    filmed_with = replace(clip.truth.filmed_with, clip=Path(metadata).stem)
    truth = replace(clip.truth, filmed_with=filmed_with)
    return replace(clip, truth=truth, notes=compared.notes)


def _compare(reported: ReportedRig, table: Table, catalogue: Path | None) -> RigComparison:
    """What the metadata say of lens and camera, against the table's."""
    known = load_catalogue(catalogue)
    lens, camera = known.lens_name(table.lens), known.camera_name(table.camera)
    return compare_rig(reported, lens, camera, table.image_size, owner="the table")
