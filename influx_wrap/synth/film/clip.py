"""A simulated clip: a lens that zooms and focuses in a textured room, with the truth of it.

The place and the camera's walk through it are ``synth.room``'s, the lens is ``synth.lens``'s at
any setting. Beside the video there is what an InFlux video comes with: the lens's metadata, the
ground truth of every frame, and a manifest, so that predictions can be made and scored.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from influx_wrap.compute.progress import Progress, adding, no_progress
from influx_wrap.errors import InputError
from influx_wrap.formats.files import read_json, remove_leftovers, write_json
from influx_wrap.formats.groundtruth import write_ground_truth
from influx_wrap.formats.lens_metadata import write_lens_metadata
from influx_wrap.formats.manifest import VALIDATION, Video, write_manifest
from influx_wrap.formats.video import SUFFIXES, check_codec
from influx_wrap.model.arrays import FloatArray
from influx_wrap.model.experiment import Plan
from influx_wrap.model.ground_truth import GroundTruth
from influx_wrap.model.hardware import Camera
from influx_wrap.model.intrinsics import Intrinsics
from influx_wrap.model.lens_metadata import LensMetadata
from influx_wrap.model.rig import FilmedWith
from influx_wrap.synth.film.rendering import Rendering, shoot_video
from influx_wrap.synth.film.simulation import claim
from influx_wrap.synth.lens import LensOptions, SimulatedLens, simulated_lens, turned_rings
from influx_wrap.synth.room import Room, make_room, render_room, walk

METADATA, TRUTH = "metadata.csv", "truth.json"
GROUND_TRUTH, VALIDATION_TRUTH, MANIFEST = "gt.json", "gt_validation.json", "manifest.json"


@dataclass(frozen=True)
class ClipOptions:
    """What is filmed, and how.

    motion      one of ``synth.lens.MOTIONS``
    noise       standard deviation of a pixel's, of 255
    vignetting  share of the light that is lost in the corners
    """

    n_frames: int = 120
    motion: str = "zoom"
    codec: str = "h264"
    noise: float = 2.0
    vignetting: float = 0.0

    def __post_init__(self) -> None:
        if self.n_frames < 2:
            raise InputError(f"a clip needs at least 2 frames, got {self.n_frames}.")
        if not self.noise >= 0:
            raise InputError(f"the noise of a picture must be at least 0, got {self.noise:g}.")
        if not 0 <= self.vignetting <= 1:
            raise InputError(f"vignetting must be from 0 to 1, got {self.vignetting:g}.")

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionary, for the settings of a simulation."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class RoomClip(Rendering):
    """F frames of a room about to be rendered.

    metadata      of the frames
    intrinsics    (F, 8) their truth
    rotations     (F, 3, 3) and
    translations  (F, 3): from the room to camera space
    """

    options: ClipOptions
    camera: Camera
    room: Room
    metadata: LensMetadata
    intrinsics: FloatArray
    rotations: FloatArray
    translations: FloatArray
    seed: int

    @property
    def codec(self) -> str:
        return self.options.codec

    @property
    def n_frames(self) -> int:
        return len(self.intrinsics)

    def of_frame(self, frame: int) -> RoomClip:
        here = slice(frame, frame + 1)
        return replace(
            self,
            metadata=self.metadata.some(self.metadata.frame == frame),
            intrinsics=self.intrinsics[here],
            rotations=self.rotations[here],
            translations=self.translations[here],
        )

    def picture(self, frame: int) -> NDArray[np.uint8]:
        own = int(np.flatnonzero(self.metadata.frame == frame)[0])
        return render_room(
            self.room,
            Intrinsics.from_array(self.intrinsics[own]),
            self.camera.image_size,
            self.rotations[own],
            self.translations[own],
            np.random.default_rng([self.seed, 1 + frame]),
            noise=self.options.noise,
            vignetting=self.options.vignetting,
        )


def plan_clip(plan: Plan, lens: SimulatedLens, options: ClipOptions, seed: int) -> RoomClip:
    """A clip of ``plan``'s lens as ``lens`` simulates it; ``seed`` decides on the room, the
    walk, and which way the rings are turned."""
    rng = np.random.default_rng([seed, 0])
    room = make_room(plan.camera.height_above_ground_m, rng)
    rotations, translations = walk(options.n_frames, rng)
    metadata = turned_rings(plan, options.motion, options.n_frames, rng)
    settings = zip(metadata.lfl_mm.tolist(), metadata.fd_m.tolist(), strict=True)
    intrinsics = np.array([lens.intrinsics(lfl, fd).array for lfl, fd in settings])
    return RoomClip(options, plan.camera, room, metadata, intrinsics, rotations, translations, seed)


def prepare_clip(
    plan: Plan,
    folder: Path,
    options: ClipOptions,
    *,
    seed: int,
    size: tuple[int, int] | None = None,
    lens: LensOptions | None = None,
) -> RoomClip:
    """Plan a clip, and make ``folder`` its own.

    size  (width, height) of the pictures in pixels; None: the camera's
    lens  what is simulated other than what the catalogue says
    """
    lens = LensOptions() if lens is None else lens
    if size is not None:
        plan = replace(plan, camera=with_size(plan.camera, size))
    check_codec(options.codec, plan.camera.image_size)
    clip = plan_clip(plan, simulated_lens(plan, lens), options, seed)
    settings = {"clip": options.as_dict(), **lens.as_dict(), "seed": seed}
    claim(folder, plan, settings)
    return clip


def shoot_clip(
    clip: RoomClip, folder: Path, *, processes: int, progress: Progress = no_progress
) -> Path:
    """Write the video and its truth, unless they are there, and return the video's path.

    The video has the folder's name, by which ground truth, manifest and predictions know it.
    """
    name = folder.resolve().name or "clip"
    video = folder / f"{name}{SUFFIXES[clip.codec]}"
    if (folder / TRUTH).exists() and video.exists():
        progress(clip.n_frames, clip.n_frames)
        return video
    remove_leftovers(folder)
    shoot_video(clip, video, clip.codec, processes, adding(progress, clip.n_frames))
    write_lens_metadata(folder / METADATA, clip.metadata)
    everywhere = np.ones(clip.n_frames, dtype=bool)
    camera = clip.camera
    filmed_with = FilmedWith(None, camera.name, camera.image_size, camera.pitch_um, clip=name)
    truth = GroundTruth(clip.metadata, clip.intrinsics, everywhere, filmed_with=filmed_with)
    write_ground_truth(folder / GROUND_TRUTH, truth)
    write_json(
        folder / VALIDATION_TRUTH, {name: read_json(folder / GROUND_TRUTH, bare_nan=True).values}
    )
    write_manifest(folder / MANIFEST, {name: Video(clip.n_frames, VALIDATION)})
    # Last, since it says that all the rest is there.
    write_json(
        folder / TRUTH,
        {
            "rotations": clip.rotations.reshape(-1, 9).tolist(),
            "translations": clip.translations.tolist(),
        },
    )
    return video


def with_size(camera: Camera, image_size: tuple[int, int]) -> Camera:
    """The camera with another number of pixels over the width of its sensor.

    Pixels keep their shape: other proportions than the sensor's show more or less above and below.
    """
    width, height = image_size
    return replace(
        camera,
        width_px=width,
        height_px=height,
        sensor_height_mm=1e-3 * camera.pitch_um[1] * height * camera.width_px / width,
    )
