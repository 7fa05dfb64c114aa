"""``influx-calib``: the group of all commands, and what happens to their errors.

Mistakes a user can mend become one sentence on stderr and exit code 2.
"""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import click

from influx_drone.errors import DroneError
from influx_wrap import __version__
from influx_wrap.cli.compilation import announced
from influx_wrap.cli.lazy import LazyGroup
from influx_wrap.cli.terminal import settle_streams
from influx_wrap.errors import InputError

COMMANDS = {
    "camera": "Intrinsics of a camera from photographs or videos of a board.",
    "plan": "Which experiments to shoot for a lens, each with which target.",
    "catalogue": "Lenses, cameras and boards: list, show, new.",
    "board": "A board to print, true to scale, with its target.yaml.",
    "simulate": "Make the experiments of a lens whose answer is known.",
    "detect": "Corners of a board in all frames of a recording.",
    "keyframes": "One sharp frame per pose of a recording, and what is missing.",
    "calibrate": "Intrinsics of one experiment from its observations.",
    "drone": "Fly a lens: plan, trigger, detect, match.",
    "run": "Calibrate all cells of a lens, simulated or recorded.",
    "report": "The page of a run, written anew.",
    "lut": "A lens's lookup table: build, query, crossval, plot, explore.",
    "annotate": "Intrinsics of every frame of a clip from its lens metadata.",
    "split": "Videos for validation and for test.",
    "export": "Intrinsics of a clip or a table, as other programs read them.",
    "predict": "Intrinsics of videos' frames by a method, for evaluate to judge.",
    "evaluate": "How good a method's predicted intrinsics are, against the truth.",
    "submission": "Predictions for the benchmark: template, fill, validate.",
    "compare": "Original, modified and batch calibration side by side.",
    "kalibr": "A real Kalibr to calibrate with: make our fork, or check one.",
}


class _Mistake(click.ClickException):
    """One sentence and, on a line of its own so that it can be pasted, a command that mends it."""

    exit_code = 2

    def __init__(self, message: str, cure: str | None = None) -> None:
        super().__init__(message)
        self._cure = cure

    def show(self, file: IO[Any] | None = None) -> None:
        super().show(file)
        if self._cure is not None:
            click.echo(f"Try: {self._cure}", file=file, err=True)


class _Commands(LazyGroup):
    _given: Sequence[str] = ()

    def main(self, args: Sequence[str] | None = None, *others: Any, **more: Any) -> Any:
        settle_streams()
        self._given = sys.argv[1:] if args is None else list(args)
        return super().main(args, *others, **more)

    def _cure(self, error: InputError) -> str | None:
        """The command that was given, with what was meant in the place of what was wrong."""
        if error.command is not None or error.instead is None:
            return error.command
        wrong, right = error.instead
        given = [right if word.rstrip("/") == wrong.rstrip("/") else word for word in self._given]
        return None if given == list(self._given) else shlex.join(["influx-calib", *given])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with announced():
                return super().invoke(ctx)
        except InputError as error:
            raise _Mistake(str(error), self._cure(error)) from None
        except DroneError as error:
            raise _Mistake(str(error)) from None
        except click.MissingParameter:
            raise
        except click.BadParameter as error:
            raise _Mistake(error.format_message()) from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            where = f"{error.filename}: " if error.filename else ""
            raise _Mistake(f"{where}{error.strerror or error}.") from None
        except KeyboardInterrupt as interrupt:
            click.echo(f"Interrupted. {interrupt}".strip(), err=True)
            raise click.exceptions.Exit(130) from None


@click.group(
    cls=_Commands,
    package="influx_wrap.cli",
    summaries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="influx-calib")
@click.option(
    "--catalogue",
    type=click.Path(path_type=Path),
    metavar="DIR",
    envvar="INFLUX_CATALOGUE",
    show_envvar=True,
    help="Folder with YAML files of your own lenses, cameras and boards; also after the command.",
)
@click.pass_context
def main(ctx: click.Context, catalogue: Path | None) -> None:
    """Per-frame camera intrinsics for zoom lenses.

    A zoom lens is calibrated setting by setting. An experiment is one setting of zoom and
    focus that was filmed, or simulated. It is a cell of a grid of lens focal lengths (LFL) and
    focus distances (FD), named z3f2 for zoom index 3 and focus index 2. Its views are the
    pictures of a board that it is calibrated with. A rollout is a calibration with the views in
    one random order; a recipe says how many of them there are, and what happens at each stage.

    \b
    Try:
      influx-calib camera photos
      influx-calib run canon17
      influx-calib evaluate method.json --truth gt.json
    """
    ctx.obj = catalogue


if __name__ == "__main__":
    main()
