"""What the Kalibr-named commands share: options as Kalibr spells them, faults as ours.

Kalibr's options take several values at a time (``--topics a b``, ``--bag-from-to 5 60``), which
is argparse's way; a mistake is one sentence on stderr and exit code 2, as with influx-calib.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import NoReturn

from influx_wrap.calibrate.result import CalibrationError
from influx_wrap.cli.terminal import settle_streams
from influx_wrap.engines.kalibr_kind import IMITATION
from influx_wrap.errors import InputError

MODEL = "pinhole-radtan"
HELP_COLUMNS = 80


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are sentences, and whose help ends with an example."""

    def __init__(self, name: str, description: str, example: str) -> None:
        super().__init__(
            prog=name,
            description=textwrap.fill(description, HELP_COLUMNS, break_on_hyphens=False),
            epilog=f"Example:\n  {example}\n\n{IMITATION}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        # By itself argparse takes -1e-3 for an option.
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        """Raise the complaint as an ``InputError``."""
        raise InputError(f"{message.rstrip('.')}; {self.prog} --help lists the options.")


def run(work: Callable[[Sequence[str]], None], arguments: Sequence[str] | None) -> int:
    """Do the work of a command; its exit code."""
    settle_streams()
    try:
        work(sys.argv[1:] if arguments is None else arguments)
    except InputError as error:
        return _said(f"Error: {error}", 2)
    except CalibrationError as error:
        return _said(f"Failed: {error}", 1)
    except BrokenPipeError:
        # Whoever read the output has seen enough; the interpreter must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _said(f"Error: {where}{error.strerror or error}.", 2)
    except KeyboardInterrupt:
        return _said("Interrupted.", 130)
    return 0


def _said(sentence: str, code: int) -> int:
    print(sentence, file=sys.stderr)
    return code


def finite(text: str) -> float:
    """A type of option: a finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a finite number")
    return value


def positive(text: str) -> float:
    """A type of option: a finite number above 0."""
    value = finite(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def count(text: str) -> int:
    """A type of option: a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def check_camera(topics: Sequence[str], models: Sequence[str]) -> str:
    """The one topic; refuses several cameras and other models."""
    if len(topics) > 1 or len(models) > 1:
        raise InputError(
            f"{max(len(topics), len(models))} cameras are given, but one at a time can be "
            "calibrated here: run the command for each topic by itself."
        )
    if models[0] != MODEL:
        raise InputError(f"the model {models[0]!r} is not available; the only one is {MODEL}.")
    return topics[0]


def check_span(span: Sequence[float] | None, option: str) -> tuple[float, float] | None:
    """Begin and end of --bag-from-to or --from-to."""
    if span is None:
        return None
    begin, end = span
    if not 0 <= begin < end:
        raise InputError(f"{option} {begin:g} {end:g} is no span: give 0 <= A < B.")
    return begin, end


def note(sentence: str) -> None:
    """Say something about an option that has no effect."""
    print(f"Note: {sentence}", file=sys.stderr)
