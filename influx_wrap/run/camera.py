"""One camera from photographs or videos of a board, in one step: ``influx-calib camera``.

Nothing is asked for but pictures: the board is recognised, the focal length found from the views.
What is typed after all, the board, is held against the corners; what contradicts it, the answer is
not to be used. Nor is it simply good if a video could be read in part only: what is missing may be
what was filmed last.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from influx_wrap.calibrate.calibrator import calibrate
from influx_wrap.calibrate.layout import check_target
from influx_wrap.calibrate.recipe import Recipe, recipe_named
from influx_wrap.calibrate.result import Calibration, CalibrationError
from influx_wrap.calibrate.sanity import explain_failure
from influx_wrap.compute.progress import Progress, Watch, no_progress, no_watch
from influx_wrap.compute.provenance import provenance
from influx_wrap.formats.export.camchain import camchain_text
from influx_wrap.formats.export.opencv import write_opencv_camera
from influx_wrap.formats.files import make_folder, not_writable, write_json, write_text
from influx_wrap.model.intrinsics import field_of_view_deg
from influx_wrap.model.result import Assessment, Grade, Json, ViewReport
from influx_wrap.model.target import Target
from influx_wrap.observe.journal import footage_hash
from influx_wrap.report.camera_page import write_camera_page
from influx_wrap.run.camera_footage import label_of
from influx_wrap.run.camera_views import BoardOfCamera, CameraViews, find_views
from influx_wrap.run.page import used_residuals

FILES = RESULT, OPENCV, CAMCHAIN, PAGE = (
    "result.json",
    "opencv.yaml",
    "camchain.yaml",
    "camera.html",
)
DIRECTIONS = ("horizontal", "vertical", "diagonal")
WORST = 3


@dataclass(frozen=True, eq=False)
class CameraCalibration:
    """A camera's calibration, and what it was made from.

    calibration  intrinsics, covariance, verdict, poses: what ``iw.calibrate`` gives
    views        the board, the footage, the views chosen, and what was not used
    made_from    versions, recipe, seed and hashes of the footage
    """

    calibration: Calibration
    views: CameraViews
    made_from: Json

    @property
    def assessment(self) -> Assessment:
        """Whether it is to be trusted."""
        assert self.calibration.assessment is not None
        return self.calibration.assessment

    @property
    def board(self) -> BoardOfCamera:
        """The board that was shown."""
        return self.views.board

    @property
    def field_of_view_deg(self) -> tuple[float, float, float]:
        """Horizontal, vertical and diagonal, with the distortion; NaN beyond the model."""
        return field_of_view_deg(self.calibration.intrinsics, self.calibration.image_size)

    @property
    def worst_views(self) -> tuple[ViewReport, ...]:
        """The used views with the largest residuals, the worst first."""
        used = sorted(self.calibration.views_used, key=lambda view: -(view.rms_px or 0.0))
        return tuple(used[:WORST])

    def as_dict(self) -> Json:
        """Plain data for ``result.json``."""
        angles = zip(DIRECTIONS, self.field_of_view_deg, strict=True)
        return {
            **self.calibration.as_dict(),
            "field_of_view_deg": {
                name: angle if angle == angle else None for name, angle in angles
            },
            "board": self.board.as_dict(),
            "footage": [one.as_dict() for one in self.views.footage],
            "provenance": self.made_from,
        }

    def write(self, folder: str | Path, progress: Progress = no_progress) -> tuple[Path, ...]:
        """Write ``result.json``, ``opencv.yaml``, ``camchain.yaml`` and ``camera.html``.

        ``progress`` hears how many pictures of the page are drawn. Returns the files.
        """
        folder = Path(folder)
        make_folder(folder)
        forget(folder)
        calibration = self.calibration
        write_opencv_camera(folder / OPENCV, calibration)
        values, size = calibration.intrinsics.array, calibration.image_size
        chain = camchain_text(values, size, f"/{self.views.footage[0].source.path.stem}/image_raw")
        write_text(folder / CAMCHAIN, f"# verdict: {self.assessment.sentence}\n{chain}")
        write_camera_page(
            folder / PAGE,
            calibration,
            self.views.observations,
            used_residuals(self.views.observations, calibration, calibration.poses),
            self.views.pictures(),
            title=", ".join(one.label for one in self.views.footage),
            facts=[self.board.sentence, *(one.sentence for one in self.views.footage)],
            notes=self.views.notes,
            progress=progress,
        )
        write_json(folder / RESULT, self.as_dict())
        return tuple(folder / name for name in FILES)


def forget(folder: Path) -> None:
    """Remove an earlier answer, so that none is taken for the new one."""
    try:
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise not_writable(folder, error) from None


def calibrate_camera(
    pictures: str | Path | Sequence[str | Path],
    board: str | Target | None = None,
    *,
    recipe: str | Recipe = "influx",
    seed: int = 0,
    jobs: int | None = None,
    watch: Watch = no_watch,
    every_frame: bool = False,
) -> CameraCalibration:
    """Calibrate a camera from photographs or videos of a board.

    pictures  a folder of photographs, photographs, a video, or several of these
    board     such as ``9x6@25mm``, or a target from ``read_target``; recognised if None
    recipe    a name (``influx``, ``paper``, ``stock``, ``batch``) or a recipe
    jobs      how much is done at once; all cores unless given
    watch     makes of a step's name who hears how far it is
    every_frame
              find corners in all frames of a video, not only in those that can become views

    Raises ``InputError`` if the pictures will not do, ``CalibrationError`` if there is no answer.

    Example:
        camera = iw.calibrate_camera("photos", "9x6@25mm")
        print(camera.calibration.intrinsics.fx, camera.assessment.sentence)
        camera.write("camera-photos")
    """
    paths = [pictures] if isinstance(pictures, str | Path) else list(pictures)
    chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
    views = find_views(
        [Path(path) for path in paths], board, jobs=jobs, watch=watch, every_frame=every_frame
    )
    with watch("calibrating") as progress:
        n_jobs = jobs or os.cpu_count() or 1
        calibration = _calibrated(views, chosen, seed, n_jobs, progress)
    made_from = provenance(
        recipe=chosen.as_dict(),
        seed=seed,
        inputs=_hashes(paths),
        board=views.board.as_dict(),
    )
    return CameraCalibration(calibration, views, made_from)


def _hashes(paths: Sequence[str | Path]) -> dict[str, str]:
    """By what the pictures are called; those of the same name in other folders by number."""
    hashes: dict[str, str] = {}
    for path in map(Path, paths):
        label = label_of(path)
        if label in hashes:
            label = f"{label} ({len(hashes) + 1})"
        hashes[label] = footage_hash(path)
    return hashes


def _calibrated(
    views: CameraViews, recipe: Recipe, seed: int, jobs: int, progress: Progress
) -> Calibration:
    observations = views.observations
    try:
        answer = calibrate(observations, recipe, seed=seed, jobs=jobs, progress=progress)
    except CalibrationError as error:
        why = explain_failure(observations)
        if why is None:
            raise
        reason = f"{why} ({error.stage}: {error.reason})"
        raise CalibrationError("target", reason, "Mend it and calibrate again.") from None
    return replace(answer, assessment=_judged(answer.assessment, views))


def _judged(verdict: Assessment | None, views: CameraViews) -> Assessment | None:
    """The verdict, with what the board and the footage have to say to it."""
    wrong = [suspicion.sentence for suspicion in check_target(views.observations)]
    damaged = {one.label: one.damage for one in views.footage if one.damage is not None}
    odd = [*([] if views.doubt is None else [views.doubt]), *damaged.values()]
    if verdict is None or not (wrong or odd):
        return verdict
    grade: Grade = "do not use" if wrong else "usable with care"
    if verdict.grade == "do not use":
        grade = verdict.grade
    mend = tuple(f"copy {path} again" for path in damaged)
    return Assessment(grade, (*wrong, *odd, *verdict.reasons), (*mend, *verdict.film_next))
