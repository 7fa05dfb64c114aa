"""A clip's file of lens metadata made into intrinsics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from influx_wrap.annotate.channels import describe_channels
from influx_wrap.annotate.clip import AnnotatedClip, annotate_clip
from influx_wrap.annotate.delay import undelayed
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.lut.lens_model import make_lens_model
from influx_wrap.lut.schemes import DEFAULT
from influx_wrap.model.lens_metadata import LensMetadata, ReportedClip
from influx_wrap.model.rig import ReportedRig, RigComparison, compare_rig
from influx_wrap.model.table import Table
from influx_wrap.model.words import counted
from influx_wrap.observe.frames import FrameSource

SAME_RATE = 0.002
"""Relative difference of frame rates that are called alike, such as 24 and 23.976."""
MOST_ROUNDING = 0.2
"""Frames by which a length in seconds may be off a whole number of them."""


def annotate(
    metadata: str | Path,
    table: Table,
    *,
    scheme: str = DEFAULT,
    by_covariance: bool | None = None,
    fill_gaps: int = 0,
    delay_frames: float = 0,
    with_sigma: bool = True,
    any_lens: bool = False,
    catalogue: str | Path | None = None,
    pictures: ReportedClip | None = None,
) -> AnnotatedClip:
    """Intrinsics of every frame of a clip, from the file of its lens metadata.

    scheme      of the interpolation
    by_covariance   whether experiments count as far as their covariances say, or all alike;
                without it all alike for the scheme ``paper`` only
    fill_gaps   so many missing frames in a row are interpolated at most
    delay_frames    the metadata lag by so many frames behind the pictures; it need not be whole
    with_sigma  whether standard deviations are wanted, too
    any_lens    go on although the metadata are of another lens, camera or picture size than the
                table, which is refused else; ``truth.filmed_with.doubts`` keeps what they said
    catalogue   folder of your own lenses and cameras, which says what metadata call them
    pictures    how many frames the clip's pictures have, and how many a second, if they are at hand

    Example:
        clip = iw.annotate("metadata.csv", iw.read_table("lut.json"))
        clip.write("gt.json")
        print(clip.truth.intrinsics[:, 0], clip.truth.sigma[:, 0])
    """
    told = read_metadata(Path(metadata), pictures)
    said = [*told.notes, *describe_channels(told), *_against_pictures(told, pictures)]
    compared = _compare(told.rig, table, None if catalogue is None else Path(catalogue))
    if compared.contradictions and not any_lens:
        raise InputError(
            f"{metadata} is not of the table's lens and camera: "
            f"{'; '.join(compared.contradictions)}. Take the table of what it was filmed with, or "
            "insist with --any-lens (any_lens=True in Python)."
        )
    try:
        clip = annotate_clip(
            undelayed(told, delay_frames),
            make_lens_model(table, scheme, by_covariance=by_covariance),
            fill=fill_gaps,
            with_sigma=with_sigma,
            doubts=compared.contradictions,
        )
    except InputError as error:
        why = () if told.told.any() else told.notes
        raise InputError(" ".join((f"{metadata}: {error}", *why))) from None
    if delay_frames:
        said.append(
            f"Frame k has the metadata of frame k {delay_frames:+g}, which lag behind the pictures."
        )
    assert clip.truth.filmed_with is not None
    filmed_with = replace(clip.truth.filmed_with, clip=Path(metadata).stem)
    truth = replace(clip.truth, filmed_with=filmed_with)
    return replace(clip, truth=truth, notes=(*said, *compared.notes))


def length_of(source: FrameSource) -> ReportedClip:
    """How long a clip's pictures are and how fast, as far as the recording says."""
    if source.n_frames is not None or not (source.seconds and source.fps):
        return ReportedClip(source.n_frames, source.fps)
    # Containers that count no frames state their length, to a thousandth of a second.
    frames = source.seconds * source.fps
    is_whole = abs(frames - round(frames)) < MOST_ROUNDING
    return ReportedClip(round(frames) if is_whole else None, source.fps)


def _compare(reported: ReportedRig, table: Table, catalogue: Path | None) -> RigComparison:
    """What the metadata say of lens and camera, against the table's."""
    known = load_catalogue(catalogue)
    lens, camera = known.lens_name(table.lens), known.camera_name(table.camera)
    return compare_rig(reported, lens, camera, table.image_size, owner="the table")


def _against_pictures(told: LensMetadata, pictures: ReportedClip | None) -> list[str]:
    """Where the metadata are of another length or rate than the clip's pictures."""
    if pictures is None:
        return []
    said = []
    listed = int(told.frame[-1]) + 1
    if pictures.n_frames is not None and pictures.n_frames != listed:
        said.append(
            f"The clip has {counted(pictures.n_frames, 'frame')}, the metadata list them up to "
            f"frame {listed - 1}: frames are matched by their numbers from the first on. Are both "
            "of the same take, and untrimmed?"
        )
    rates = pictures.fps, told.clip.fps
    if rates[0] and rates[1] and abs(rates[0] / rates[1] - 1) > SAME_RATE:
        said.append(
            f"The clip has {rates[0]:.5g} frames a second, by the metadata {rates[1]:.5g}: frames "
            "are matched by their numbers, which is wrong if the clip was converted."
        )
    return said
