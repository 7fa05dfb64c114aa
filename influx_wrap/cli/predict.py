"""``influx-calib predict``: intrinsics of videos' frames by a method."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID

from influx_wrap.cli.options import PATH, as_settings, number, setting
from influx_wrap.cli.progress import RESUME, progress_bar
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import load_catalogue
from influx_wrap.formats.files import check_writable
from influx_wrap.formats.groundtruth import GroundTruth, read_ground_truth, read_validation
from influx_wrap.formats.lens_metadata import read_metadata
from influx_wrap.formats.submission import write_submission
from influx_wrap.model.predictions import Predictions
from influx_wrap.predict.external import Environment, External
from influx_wrap.predict.predictor import Footage, Predictor
from influx_wrap.predict.registry import METHODS, is_trivial, make_predictor
from influx_wrap.predict.videos import Journal, Outcome, predict_videos

VERSION = "influx"


@click.command("predict")
@click.argument("videos", nargs=-1, required=True, metavar="[NAME=]VIDEO_OR_FRAMES...")
@click.option(
    "--method",
    required=True,
    metavar="NAME",
    help=f"{', '.join(METHODS)}; or a runner of your own, a file such as mine.py.",
)
@click.option("--out", type=PATH, required=True, help="File for the predictions.")
@click.option(
    "--metadata",
    type=PATH,
    multiple=True,
    help="Lens metadata for the method metadata; repeated, one file per video in their order.",
)
@click.option(
    "--truth", type=PATH, help="Ground truth for perfect and noisy: a clip's, or all videos'."
)
@click.option(
    "--camera",
    default="arri-alexa-mini",
    show_default=True,
    help="Whose sensor turns millimetres into pixels, for the method metadata.",
)
@click.option(
    "--set",
    "settings",
    type=setting,
    multiple=True,
    metavar="KEY=VALUE",
    help="Replace one of the method's settings, such as weights=FILE; may be repeated.",
)
@click.option(
    "--python",
    metavar="PATH",
    show_default="this one",
    help="Interpreter of the environment in which the method is installed.",
)
@click.option("--image", metavar="NAME", help="Container image in which the method is installed.")
@click.option(
    "--run-option",
    "run_options",
    multiple=True,
    metavar="TEXT",
    help="For the container engine, such as --run-option=--gpus=all; may be repeated.",
)
@click.option(
    "--stride",
    type=click.IntRange(min=1),
    show_default="the method's: 5 for colmap, else 1",
    help="Look at every Nth frame; the others have no answer.",
)
@click.option(
    "--timeout-s",
    type=number(above=0),
    show_default="300, or 3600 for a method that wants the whole video",
    metavar="SECONDS",
    help="How long a method may be silent.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Videos at once, each with a process of the method's.",
)
@click.pass_obj
def command(
    catalogue: Path | None,
    videos: tuple[str, ...],
    method: str,
    out: Path,
    metadata: tuple[Path, ...],
    truth: Path | None,
    camera: str,
    settings: tuple[tuple[str, str], ...],
    python: str | None,
    image: str | None,
    run_options: tuple[str, ...],
    stride: int | None,
    timeout_s: float | None,
    jobs: int,
) -> None:
    """Predict the intrinsics of every frame of videos, or folders of pictures.

    A video has the name of its file, without the ending, unless NAME says otherwise. The file
    that is written has a submission's form: evaluate scores it, submission fill takes it.

    COLMAP comes with pip install 'influx_wrap[predict]'. The other methods are run where you
    installed them: in the environment of --python, or the container image of --image. What they
    write to stderr is kept in a folder beside the predictions, named like them with .logs. A
    method that crashes, hangs or prints rubbish costs that video only: its frames have no answer,
    and the exit code is 1. The same command goes on where it was stopped, and tries again what
    failed.

    \b
    Example:
      influx-calib predict clip.mov --method colmap --out colmap.json
      influx-calib predict val/*.mp4 --method geocalib --python geocalib-env/bin/python \\
          --out geocalib.json
    """
    paths = _named(videos)
    given_files = [*paths.values(), *metadata, *([truth] if truth else []), Path(method)]
    if out.resolve() in [path.resolve() for path in given_files]:
        raise InputError(f"--out {out} would replace what is read. Choose another name.")
    environment = Environment(
        python or ("python3" if image else sys.executable), image, run_options
    )
    logs = out.with_name(f"{out.name}.logs")
    given = as_settings(settings, None)
    sensor_width_mm = load_catalogue(catalogue).camera(camera).sensor_width_mm
    if is_trivial(method) and any((python, image, stride, timeout_s, run_options)):
        raise InputError(
            f"{method} runs no program and looks at no frame: --python, --image, --run-option, "
            "--stride and --timeout-s are for other methods."
        )
    if run_options and not image:
        raise InputError("--run-option is for a container: give its --image too.")

    def make(stop: threading.Event) -> Predictor:
        return make_predictor(
            method,
            given,
            sensor_width_mm=sensor_width_mm,
            environment=environment,
            logs=logs,
            stride=stride,
            timeout_s=timeout_s,
            stop=stop,
        )

    predictor = make(threading.Event())
    footages = _footages(paths, method, metadata, truth)
    check_writable(out)
    made_with = {
        "method": predictor.name,
        "settings": given,
        "sensor_width_mm": sensor_width_mm,
        **_provenance(predictor),
    }
    journal = Journal(out.with_name(f".{out.name}.journal"), made_with)
    outcomes: dict[str, Outcome] = {}
    bars = _Bars(predictor.name, len(footages))
    try:
        running = predict_videos(footages, make, journal, jobs=jobs, progress=bars.update)
        with bars.progress, closing(running):
            for outcome in running:
                outcomes[outcome.name] = outcome
                bars.finish(outcome.name)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(RESUME) from None
    _write(out, predictor, [outcomes[name] for name in paths], journal)


def _write(out: Path, predictor: Predictor, outcomes: Sequence[Outcome], journal: Journal) -> None:
    predicted = {
        outcome.name: outcome.answers(predictor.kind) for outcome in outcomes if outcome.n_frames
    }
    console = answers()
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    for outcome in outcomes:
        if outcome.failure is not None:
            lost = "none of its frames has an answer" if outcome.n_frames else "it is left out"
            text = f"video {outcome.name}: {lost}: {outcome.failure}"
            errors.print(f"[red]failed:[/] {escape(text)}")
            continue
        assert outcome.predicted is not None
        for warning in outcome.predicted.warnings:
            errors.print(f"[yellow]warning:[/] {escape(f'video {outcome.name}: {warning}')}")
        answered = int(outcome.predicted.answers.answered.sum())
        kept = " (there already)" if outcome.kept else ""
        console.print(
            escape(f"{outcome.name}: {answered} of {outcome.n_frames} frames{kept}"),
            soft_wrap=True,
        )
    if predicted:
        write_submission(out, Predictions(predictor.name, predictor.kind, VERSION, predicted))
        print_written(out)
    if all(outcome.failure is None for outcome in outcomes):
        journal.remove()
        if all(outcome.predicted and outcome.predicted.whole for outcome in outcomes):
            return
    raise click.exceptions.Exit(1)


def _named(videos: Sequence[str]) -> dict[str, Path]:
    """Videos by name; ``NAME=PATH``, or a path whose last part is the name."""
    paths: dict[str, Path] = {}
    for text in videos:
        path, (name, equals, rest) = Path(text), text.partition("=")
        if equals and not path.exists() and "/" not in name:
            path = Path(rest)
        else:
            name = path.resolve().name if path.is_dir() else path.stem
        if not path.exists():
            raise InputError(f"{path} does not exist.")
        if not name:
            raise InputError(f"{text}: the name before = is missing.")
        if name in paths:
            raise InputError(
                f"{paths[name]} and {path} would both be video {name}: name one of them, as in "
                f"other={path}."
            )
        paths[name] = path
    return paths


def _footages(
    paths: dict[str, Path], method: str, metadata: Sequence[Path], truth: Path | None
) -> list[Footage]:
    if metadata and method != "metadata":
        raise InputError(f"--metadata is for the method metadata, not for {method}.")
    if method == "metadata" and len(metadata) != len(paths):
        raise InputError(
            f"the method metadata needs a --metadata file for each of the {len(paths)} videos, in "
            f"their order; there are {len(metadata)}."
        )
    if (truth is None) == (method in ("perfect", "noisy")):
        raise InputError("--truth is for the methods perfect and noisy, which need it.")
    told = dict(zip(paths, map(read_metadata, metadata), strict=False))
    truths = {} if truth is None else _truths(truth, list(paths))
    return [Footage(name, path, told.get(name), truths.get(name)) for name, path in paths.items()]


def _truths(path: Path, names: Sequence[str]) -> dict[str, GroundTruth]:
    """From a file of all videos or, for a single video, from its own."""
    try:
        truths = read_validation(path)
    except InputError:
        if len(names) > 1:
            raise
        return {names[0]: read_ground_truth(path)}
    missing = [name for name in names if name not in truths]
    if missing:
        raise InputError(f"{path} has no video {missing[0]}; name it as there: NAME=PATH.")
    return truths


def _provenance(predictor: Predictor) -> dict[str, object]:
    """What else shapes the answers of a method that is run elsewhere."""
    if not isinstance(predictor, External):
        return {}
    return {
        "runner": hashlib.sha256(predictor.runner.path.read_bytes()).hexdigest(),
        "environment": str(predictor.environment),
        "stride": predictor.stride,
    }


class _Bars:
    """A bar for every video that is being looked at, and one for all of them."""

    def __init__(self, method: str, n_videos: int) -> None:
        self.progress = progress_bar(Console(stderr=True))
        self._all = self.progress.add_task(method, total=n_videos, visible=n_videos > 1)
        self._tasks: dict[str, TaskID] = {}

    def update(self, name: str, done: int, total: int | None) -> None:
        """Say how far a video is; threads call this, each for its own videos."""
        if name not in self._tasks:
            self._tasks[name] = self.progress.add_task(escape(name), total=total)
        self.progress.update(self._tasks[name], completed=done, total=total)

    def finish(self, name: str) -> None:
        """A video is over."""
        if name in self._tasks:
            self.progress.remove_task(self._tasks[name])
        self.progress.advance(self._all)
