"""Of what size the pictures are whose intrinsics are compared.

End-point errors count the points that a picture shows, so that its size decides about the score.
The truth says it where it was written by ``annotate``; the files of the InFlux release do not,
and are of one camera. What is typed or assumed must not contradict the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from influx_wrap.errors import InputError
from influx_wrap.model.ground_truth import MOST_OFF_CENTRE, GroundTruth
from influx_wrap.model.words import counted, size_text


@dataclass(frozen=True)
class PictureSize:
    """(width, height) in pixels, and what a reader must know about it, a sentence each."""

    size: tuple[int, int]
    notes: tuple[str, ...] = ()


def settle_size(
    truth: Mapping[str, GroundTruth], asked: tuple[int, int] | None, assumed: tuple[int, int]
) -> PictureSize:
    """The size of all videos' pictures: what the truth says, else ``asked``, else ``assumed``."""
    told = {
        video: known.filmed_with.image_size
        for video, known in truth.items()
        if known.filmed_with is not None
    }
    size = asked or next(iter(told.values()), assumed)
    for video, own in told.items():
        if own != size:
            raise InputError(_contradiction(video, own, size, asked))
    untold = [video for video in truth if video not in told]
    notes: list[str] = []
    for video in untold:
        # Somebody who gives a size may know of a crop, but not of a lens beside the picture.
        most = MOST_OFF_CENTRE if asked is None else 0.5
        _check_principal_point(video, truth[video], size, most)
    if untold and asked is None:
        n = counted(len(untold), "such video")
        reason = "that is assumed" if not told else "as the others do"
        notes.append(
            f"The truth does not say how large the pictures of video {untold[0]} are "
            f"({n}): {size_text(size)} pixels, {reason}. Give --size."
        )
    return PictureSize(size, tuple(notes))


def _contradiction(
    video: str, own: tuple[int, int], size: tuple[int, int], asked: tuple[int, int] | None
) -> str:
    pictures = f"the pictures of video {video} have {size_text(own)} pixels by the truth"
    if asked is not None:
        return f"{pictures}, and {size_text(size)} by --size. Leave --size out."
    return (
        f"{pictures}, those of another video {size_text(size)}: scores are of one size. Evaluate "
        "them one after the other."
    )


def _check_principal_point(
    video: str, known: GroundTruth, size: tuple[int, int], most: float
) -> None:
    """Refuse a principal point that pictures of this size cannot have."""
    if known.share_off_centre(size) > most:
        point = known.principal_point
        raise InputError(
            f"the principal point of video {video} is at {point[0]:.0f}, {point[1]:.0f} px, far "
            f"from the middle of pictures with {size_text(size)} pixels: give the size of its "
            "pictures with --size."
        )
