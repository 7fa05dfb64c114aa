"""``influx-calib predict``: intrinsics of videos' frames by a method."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import TaskID

from influx_wrap.cli.options import (
    PATH,
    as_settings,
    catalogue_option,
    count_option,
    number_option,
    setting,
)
from influx_wrap.cli.progress import RESUME, progress_bar
from influx_wrap.cli.tables import answers, print_written
from influx_wrap.errors import InputError
from influx_wrap.formats.catalogue import CAMERA, load_catalogue
from influx_wrap.formats.files import read_text, write_text
from influx_wrap.predict.installed import external_methods, known_methods
from influx_wrap.predict.process import RUNNERS, Environment
from influx_wrap.predict.run import (
    METHODS,
    PredictRequest,
    check_method,
    named_videos,
    prepare,
)
from influx_wrap.predict.trivial import TRIVIAL
from influx_wrap.predict.videos import Outcome


@click.command("predict")
@click.argument("videos", nargs=-1, metavar="[NAME=]VIDEO_OR_FRAMES...")
@click.option(
    "--method",
    metavar="NAME",
    help=f"{', '.join(METHODS)}; or a runner of your own, a file such as mine.py.",
)
@click.option("--out", type=PATH, help="File for the predictions.")
@click.option(
    "--list",
    "is_listed",
    is_flag=True,
    help="Say which methods there are, what of them is installed, and how to install the others.",
)
@click.option(
    "--template", type=PATH, help="Write a runner to begin your own with, as this new file."
)
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
    default=CAMERA,
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
@count_option(
    "--stride",
    None,
    "Look at every Nth frame; the others have no answer.",
    at_least=1,
    shown="the method's: 5 for colmap and hloc, else 1",
)
@number_option(
    "--timeout-s",
    None,
    "How long a method may be silent.",
    above=0,
    metavar="SECONDS",
    shown="300, or 3600 for a method that wants the whole video",
)
@count_option("--jobs", 1, "Videos at once, each with a process of the method's.", at_least=1)
@catalogue_option
def command(
    catalogue: Path | None,
    videos: tuple[str, ...],
    method: str | None,
    out: Path | None,
    is_listed: bool,
    template: Path | None,
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
      influx-calib predict --list
      influx-calib predict clip.mov --method colmap --out colmap.json
      influx-calib predict val/*.mp4 --method geocalib --python geocalib-env/bin/python \\
          --out geocalib.json
    """
    given = as_settings(settings, None)
    environment = Environment(
        python or ("python3" if image else sys.executable), image, run_options
    )
    if template is not None:
        _write_template(template)
        return
    if is_listed:
        _print_methods(environment, method, given)
        return
    if not videos or method is None or out is None:
        raise InputError(
            "predict needs a video, --method and --out. The methods: influx-calib predict --list."
        )
    named = named_videos(videos)
    read = [*named.values(), *metadata, *([truth] if truth else []), Path(method)]
    if out.resolve() in [path.resolve() for path in read]:
        raise InputError(f"--out {out} would replace what is read. Choose another name.")
    sensor_width_mm = load_catalogue(catalogue).camera(camera).sensor_width_mm
    if method in TRIVIAL and any((python, image, stride, timeout_s, run_options)):
        raise InputError(
            f"{method} runs no program and looks at no frame: --python, --image, --run-option, "
            "--stride and --timeout-s are for other methods."
        )
    if run_options and not image:
        raise InputError("--run-option is for a container: give its --image too.")
    request = PredictRequest(
        named, out, method, given, metadata, truth, sensor_width_mm, environment,
        stride=stride, timeout_s=timeout_s, jobs=jobs,
    )  # fmt: skip
    run = prepare(request)
    bars = _Bars(run.method, len(run.footages))
    try:
        with bars.progress:
            outcomes = run.predict(bars.update, bars.finish)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(RESUME) from None
    for outcome in outcomes:
        _print(outcome)
    if run.write(outcomes):
        print_written(out)
    if not all(outcome.is_whole for outcome in outcomes):
        raise click.exceptions.Exit(1)


def _write_template(path: Path) -> None:
    if path.suffix != ".py" or path.exists():
        why = "exists already" if path.exists() else "does not end in .py"
        raise InputError(f"--template {path} {why}. Choose another name.")
    write_text(path, read_text(RUNNERS / "template.py"))
    print_written(path)


def _print_methods(environment: Environment, method: str | None, given: Mapping[str, str]) -> None:
    """All methods, or one; blank lines between them."""
    if method is None or method in TRIVIAL:
        if given:
            raise InputError("--list takes --set only with --method, for a method with a runner.")
        states = [one for one in known_methods(environment) if method in (None, one.name)]
    else:
        check_method(method)
        states = external_methods([method], given, environment)
    for place, state in enumerate(states):
        found = f"missing: {', '.join(state.missing)}" if state.missing else "installed"
        lines = [f"{state.name}  ({', '.join(state.kinds)})  {found}", f"    {state.about}"]
        if state.settings:
            defaults = " ".join(f"{key}={value}" for key, value in state.settings.items())
            lines.append(f"    --set {defaults}")
        if state.install and (state.missing or method):
            lines.append(f"    {state.install}")
        text = "\n".join(["", *lines] if place else lines)
        answers().print(escape(text), soft_wrap=True)


def _print(outcome: Outcome) -> None:
    """What became of a video: on stderr what is wrong, on stdout how much is answered."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    if outcome.failure is not None:
        lost = "none of its frames has an answer" if outcome.n_frames else "it is left out"
        text = f"video {outcome.name}: {lost}: {outcome.failure}"
        errors.print(f"[red]failed:[/] {escape(text)}")
        return
    assert outcome.predicted is not None
    for warning in outcome.predicted.warnings:
        errors.print(f"[yellow]warning:[/] {escape(f'video {outcome.name}: {warning}')}")
    answered = int(outcome.predicted.answers.answered.sum())
    kept = " (there already)" if outcome.kept else ""
    answers().print(
        escape(f"{outcome.name}: {answered} of {outcome.n_frames} frames{kept}"), soft_wrap=True
    )


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
