"""From a flight's video and readings to its experiment, or to a question for a person.

The flashes are found in the video (``detect_flight``). What belongs together is matched and
written down. If a person has to decide, a page is written to decide on, an experiment of an
earlier match is removed, and a sentence says what is asked; the decision comes back as a
``review.csv``. Else the experiment is written.

``run`` comes with a recording whose flashes are still to be detected (``observe_flight``),
``drone match`` with the folder of a flight in which they are (``match_folder``). ``_decide``
is what they share.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from influx_wrap.compute.progress import Progress, Watch
from influx_wrap.errors import InputError
from influx_wrap.flight.files import MATCH, forget_experiment, write_flight_experiment, write_match
from influx_wrap.flight.match import MIN_PAIRS, MatchedFlight
from influx_wrap.flight.review import REVIEW_PAGE, settle_flight, write_review_files
from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.formats.files import file_hash, write_json
from influx_wrap.formats.flight import (
    FLASH_RTK,
    FLASHES,
    OTHER_LIGHTS,
    OtherLight,
    StoredFlashes,
    read_flash_rtk,
    read_flashes,
    read_other_lights,
)
from influx_wrap.formats.flight_recording import read_flight_recording
from influx_wrap.formats.freshness import MADE_FROM, is_made_from
from influx_wrap.formats.pairs import PAIRS, REVIEW
from influx_wrap.formats.recording_truth import FlightTruth, read_flight_truth
from influx_wrap.formats.recording_yaml import DRONE, is_flight
from influx_wrap.model.experiment import Plan, Setting
from influx_wrap.model.flashes import Readings
from influx_wrap.model.hardware import Camera
from influx_wrap.model.optics import thin_lens_focal_px
from influx_wrap.model.words import size_text
from influx_wrap.observe.flashes import FLASH_S, detect_flashes
from influx_wrap.observe.recorded import check_rig, extracted_metadata
from influx_wrap.observe.sources import open_frames
from influx_wrap.report.flashes_figure import draw_flashes

FLASHES_PNG = "flashes.png"


@dataclass(frozen=True, eq=False)
class DetectedFlight:
    """The flashes, and the lights that were not taken for one."""

    stored: StoredFlashes
    others: list[OtherLight]


@dataclass(frozen=True, eq=False)
class ObservedFlight:
    """What was found in a flight, and what goes with what."""

    stored: StoredFlashes
    matched: MatchedFlight


@dataclass(frozen=True)
class MatchRequest:
    """The folder of a flight that is to be matched, and what is known of it.

    catalogue       folder of more lenses and cameras; None: there is none
    out             folder of the experiment; None: ``folder``, or ``experiment`` in it if it is
                    that of a recording
    lens, camera,
    lfl_mm, fd_m    what it was filmed with; None: as ``recording.yaml`` says, if there is one
    footage         the video; None: where it was when the flashes were detected
    clock_offset_s  what the readings' clock shows at the first frame; None if not known
    min_pairs       fewer are not calibrated with
    accept          take what is proposed, unless it is ambiguous
    review          write the page on which a person decides
    """

    folder: Path
    catalogue: Path | None = None
    out: Path | None = None
    lens: str | None = None
    camera: str | None = None
    lfl_mm: float | None = None
    fd_m: float | None = None
    footage: Path | None = None
    clock_offset_s: float | None = None
    min_pairs: int = MIN_PAIRS
    accept: bool = False
    review: bool = False


@dataclass(frozen=True, eq=False)
class MatchOutcome:
    """What has become of a flight.

    refusal     why there is no experiment, with what to do; None if it was not refused
    experiment  its folder; None if it was refused, or the lens's setting is not known
    written     the files and folders that are there now
    """

    observed: ObservedFlight
    refusal: str | None
    experiment: Path | None
    written: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class _Flight:
    """A flight whose flashes are detected, and what it was filmed with.

    rtk           the file of ``readings``
    title         of its review page
    lens, camera,
    setting       None where that is not known
    truth         the answer to a simulated flight; None: it is a real one
    """

    stored: StoredFlashes
    readings: Readings
    rtk: Path
    footage: Path
    title: str
    lens: str | None
    camera: Camera | None
    setting: Setting | None
    truth: FlightTruth | None

    @property
    def focal_px(self) -> float | None:
        if self.camera is None or self.setting is None:
            return None
        return thin_lens_focal_px(self.setting.lfl_mm, self.setting.fd_m, self.camera.pixel_um)


def detect_flight(
    video: Path,
    out: Path,
    *,
    jobs: int,
    flash_s: float = FLASH_S,
    fps: float | None = None,
    watch: Watch,
    drawing: Callable[[], AbstractContextManager[object]],
) -> DetectedFlight:
    """Find the flashes in ``video``; write ``flashes.json``, ``other_lights.json`` and a
    contact sheet, ``flashes.png``, to ``out``.

    ``flash_s`` and ``fps`` are those of ``detect_flashes``. ``drawing`` is open
    while the contact sheet is drawn. For the main thread only.
    """
    source = open_frames(video, colour=True)
    with watch("looking for flashes") as progress:
        stored = detect_flashes(source, out, jobs=jobs, progress=progress, flash_s=flash_s, fps=fps)
    with drawing():
        pictures = source.at(stored.flashes.frames.tolist())
        draw_flashes(pictures, stored.flashes, out / FLASHES_PNG)
    return DetectedFlight(stored, read_other_lights(out / OTHER_LIGHTS))


def observe_flight(
    folder: Path,
    plan: Plan,
    out: Path,
    *,
    jobs: int,
    progress: Progress,
    drawing: Progress,
) -> ObservedFlight:
    """Make the experiment ``out`` from the recorded flight in ``folder``.

    ``progress`` hears of frames, ``drawing`` of the review page's pictures. A review is
    taken from ``folder`` or, if there is none, from ``out``. For the main thread only.

    Raises ``InputError`` if a person has to decide.
    """
    recording = read_flight_recording(folder, extracted_metadata(folder, out))
    source = open_frames(recording.footage, colour=True)
    check_rig(recording, source, plan)
    stored = detect_flashes(source, out, jobs=jobs, progress=progress)
    flight = _Flight(
        stored=stored,
        readings=read_flash_rtk(recording.rtk),
        rtk=recording.rtk,
        footage=recording.footage,
        title=folder.name,
        lens=plan.lens.name,
        camera=plan.camera,
        setting=Setting(folder.name, DRONE, recording.lfl_mm, recording.fd_m),
        truth=read_flight_truth(folder),
    )
    advice = (
        f"Decide in {out / REVIEW_PAGE} (in the run's data folder), save {REVIEW} beside it or "
        "beside the recording."
    )
    outcome = _decide(
        flight,
        out,
        out,
        reviews=(folder / REVIEW, out / REVIEW),
        advice=lambda _: advice,
        page="when asked",
        watch=lambda _: nullcontext(drawing),
    )
    if outcome.refusal is not None:
        raise InputError(outcome.refusal)
    return outcome.observed


def match_folder(
    request: MatchRequest,
    *,
    advice: Callable[[MatchedFlight], str],
    settled: Callable[[ObservedFlight], None],
    watch: Watch,
) -> MatchOutcome:
    """Make an experiment from a folder with ``flashes.json`` and ``flash_rtk.json``.

    ``advice`` says what a person who is asked can do. ``settled`` hears the match as soon as it
    is written, whatever becomes of it. A review is taken from the flight's folder.
    """
    folder = request.folder
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; a flight is a folder of files.")
    is_recording = is_flight(folder)
    out = request.out or (folder / "experiment" if is_recording else folder)
    flight = _flight_in(request, out, is_recording)
    return _decide(
        flight,
        folder,
        out,
        reviews=(folder / REVIEW,),
        advice=advice,
        page="always" if request.review else "never",
        clock_offset_s=request.clock_offset_s,
        min_pairs=request.min_pairs,
        accept=request.accept,
        settled=settled,
        watch=watch,
    )


def _flight_in(request: MatchRequest, out: Path, is_recording: bool) -> _Flight:
    folder = request.folder
    rtk, cell, truth = folder / FLASH_RTK, folder.resolve().name, None
    lens, camera = request.lens, request.camera
    lfl_mm, fd_m = request.lfl_mm, request.fd_m
    if is_recording:
        recording = read_flight_recording(folder, extracted_metadata(folder, out))
        rtk, cell, truth = recording.rtk, recording.cell or cell, read_flight_truth(folder)
        lens, camera = lens or recording.lens, camera or recording.camera
        lfl_mm, fd_m = lfl_mm or recording.lfl_mm, fd_m or recording.fd_m
    known = load_catalogue(request.catalogue)
    setting = None
    if lfl_mm is not None and fd_m is not None:
        setting = Setting(cell, DRONE, lfl_mm, fd_m)
    elif lfl_mm is not None or fd_m is not None:
        missing = "--fd-m" if fd_m is None else "--lfl-mm"
        raise InputError(f"a lens's setting is --lfl-mm and --fd-m: {missing} is missing.")
    lens = None if lens is None else known.lens(lens).name
    body = None if setting is None and camera is None else known.camera(camera or CAMERA)
    stored, readings = read_flashes(folder / FLASHES), read_flash_rtk(rtk)
    if body is not None and body.image_size != stored.flashes.image_size:
        raise InputError(
            f"{folder / FLASHES} is of {size_text(stored.flashes.image_size)} pixels, camera "
            f"{body.name} has {size_text(body.image_size)}. Name the camera that filmed it with "
            "--camera."
        )
    footage, title = request.footage or stored.footage, folder.resolve().name
    return _Flight(stored, readings, rtk, footage, title, lens, body, setting, truth)


def _decide(
    flight: _Flight,
    folder: Path,
    out: Path,
    *,
    reviews: tuple[Path, ...],
    advice: Callable[[MatchedFlight], str],
    page: Literal["never", "always", "when asked"],
    clock_offset_s: float | None = None,
    min_pairs: int = MIN_PAIRS,
    accept: bool = False,
    settled: Callable[[ObservedFlight], None] = lambda _: None,
    watch: Watch,
) -> MatchOutcome:
    """Match, write that to ``folder``, and make the experiment ``out`` of it or say why not.

    reviews  where a person's review is looked for; the first that is there counts
    page     when the page is written on which a person decides: "when asked" is if there is a
             question, unless the page is there and would be the same
    The others are those of ``match_folder`` and of ``MatchRequest``.
    """
    review = next((path for path in reviews if path.exists()), None)
    matched = settle_flight(
        flight.stored.flashes,
        flight.readings,
        review,
        focal_px=flight.focal_px,
        clock_offset_s=clock_offset_s,
    )
    observed = ObservedFlight(flight.stored, matched)
    write_match(folder, matched)
    written = [folder / PAIRS, folder / MATCH]
    if page == "always":
        _write_page(flight, folder, matched, watch)
        written.append(folder / REVIEW_PAGE)
    settled(observed)
    refusals = [few] if (few := matched.too_few(min_pairs)) else []
    if matched.questions and not (accept and matched.verdict != "ambiguous"):
        # A person may also add the pairs that are missing.
        refusals.append(f"{matched.refusal()} {advice(matched)}")
        if page == "when asked":
            _write_page_anew(flight, folder, matched, review, watch)
    if refusals:
        # What is there of an earlier match is not what the flight says now.
        forget_experiment(out)
        return MatchOutcome(observed, " ".join(refusals), None, tuple(written))
    if flight.setting is None or flight.camera is None or flight.lens is None:
        return MatchOutcome(observed, None, None, tuple(written))
    write_flight_experiment(out, matched, flight.setting, flight.camera, flight.lens, flight.truth)
    return MatchOutcome(observed, None, out, (*written, out))


def _write_page(flight: _Flight, folder: Path, matched: MatchedFlight, watch: Watch) -> None:
    with watch("pictures") as progress:
        write_review_files(folder, matched, flight.footage, title=flight.title, progress=progress)


def _write_page_anew(
    flight: _Flight, folder: Path, matched: MatchedFlight, review: Path | None, watch: Watch
) -> None:
    """Write the review page, unless it is there and would be the same."""

    def made_from(decided: Path | None) -> dict[str, str | None]:
        return {
            "flashes": file_hash(folder / FLASHES),
            "rtk": file_hash(flight.rtk),
            "review": None if decided is None else file_hash(decided),
        }

    if (folder / REVIEW_PAGE).exists() and is_made_from(folder / MADE_FROM, made_from(review)):
        return
    _write_page(flight, folder, matched, watch)
    write_json(folder / MADE_FROM, made_from(review or folder / REVIEW))
