"""What a clip was filmed with, and whether it is what its metadata say.

A table is of one lens on one camera, and its numbers are wrong for every other. Cameras write
into the metadata what they call the lens and themselves, and how large their pictures are; the
catalogue's ``metadata_model`` says which names mean the lens or camera of a table. Names are
compared by their letters and digits alone: cases, blanks and dashes differ between programs.
"""

from __future__ import annotations

from dataclasses import dataclass

from influx_wrap.model.words import size_text


@dataclass(frozen=True)
class ReportedRig:
    """What a clip's metadata call lens and camera, and the sizes of its pictures; each value
    once, and nothing where the metadata do not say. ``aliases`` are groups of names of the same
    lens or camera, of which one stands among the models."""

    lens_models: tuple[str, ...] = ()
    camera_models: tuple[str, ...] = ()
    image_sizes: tuple[tuple[int, int], ...] = ()
    aliases: tuple[tuple[str, ...], ...] = ()

    def names_of(self, model: str) -> tuple[str, ...]:
        """A model's name, and all others that it goes by."""
        groups = [group for group in self.aliases if model in group]
        return tuple(dict.fromkeys((model, *(name for group in groups for name in group))))


@dataclass(frozen=True)
class FilmedWith:
    """What intrinsics of a clip are of.

    lens, camera  their names in the catalogue; None where nobody said
    image_size    (width, height) in pixels
    pixel_um      (2,) pitch of the sensor's pixels in x and in y; None if it is not known
    doubts        what the metadata said otherwise, and somebody decided to go on
    clip          what the clip is called; None if nobody said
    """

    lens: str | None
    camera: str | None
    image_size: tuple[int, int]
    pixel_um: tuple[float, float] | None = None
    doubts: tuple[str, ...] = ()
    clip: str | None = None


@dataclass(frozen=True)
class DeviceName:
    """A lens or camera by its name in the catalogue, and by the one that metadata have for it,
    which may not be known."""

    name: str
    metadata_model: str | None = None

    def is_called(self, *reported: str) -> bool | None:
        """Whether metadata that say one of ``reported`` mean this one; None if there is no
        telling."""
        own = {_letters(self.name), _letters(self.metadata_model or "")}
        if any(_letters(name) in own for name in reported):
            return True
        return None if self.metadata_model is None else False

    def __str__(self) -> str:
        if self.metadata_model is None:
            return self.name
        return f"{self.name} ({self.metadata_model!r} in metadata)"


@dataclass(frozen=True)
class RigComparison:
    """Where metadata contradict a table or a run, and what could not be compared: a clause or
    sentence each."""

    contradictions: tuple[str, ...]
    notes: tuple[str, ...]


def compare_rig(
    reported: ReportedRig,
    lens: DeviceName,
    camera: DeviceName,
    image_size: tuple[int, int],
    *,
    owner: str,
) -> RigComparison:
    """Hold what metadata report against the lens, camera and picture size of ``owner``."""
    contradictions, notes = [], []
    devices = (("lens", lens, reported.lens_models), ("camera", camera, reported.camera_models))
    for kind, device, models in devices:
        for model in models:
            is_it = device.is_called(*reported.names_of(model))
            if is_it is False:
                contradictions.append(
                    f"the {kind} is {model!r} by the metadata, {device} by {owner}"
                )
            elif is_it is None:
                notes.append(
                    f"The metadata call the {kind} {model!r}, and nobody has said whether that is "
                    f"{device.name}: give it as metadata_model in the catalogue."
                )
    for size in reported.image_sizes:
        if size != image_size:
            contradictions.append(
                f"pictures have {size_text(size)} pixels by the metadata, {size_text(image_size)} "
                f"by {owner}"
            )
    if not reported.lens_models:
        notes.append(
            f"The metadata name no lens: whether they are those of {lens.name}, nobody has checked."
        )
    return RigComparison(tuple(contradictions), tuple(notes))


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
