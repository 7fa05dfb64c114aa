"""Which Kalibr somebody has: upstream's, our fork of it, the InFlux build, or our imitation.

They are told apart by the options in their ``--help``, whatever code that ends with: upstream's and
the InFlux build's end with 2. The fork and the imitation say their names.
"""

from __future__ import annotations

import re
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from influx_wrap.engines.kalibr import COMMAND, KalibrRun, Place, RunFailed, last_words, printed
from influx_wrap.errors import InputError

KalibrKind = Literal["upstream", "fork", "influx", "imitation"]

KIND_NAMES: dict[KalibrKind, str] = {
    "upstream": "upstream's Kalibr",
    "fork": "our fork of Kalibr",
    "influx": "the InFlux build of Kalibr",
    "imitation": "influx_wrap's own imitation, not a Kalibr",
}
IMITATION = "This is influx_wrap's own command of that name; no Kalibr is needed for it."
"""The last line of the imitation's help."""
FORK = re.compile(r"influx_wrap patches, series (\d+), for\s+Kalibr\s+([0-9a-f]+)")
"""What the fork prints, at the end of its help and at the beginning of a run."""
HELP_TIMEOUT_S = 60.0
_OPTIONS = ("--models", "--topics", "--mi-tol")
"""What every Kalibr has."""


@dataclass(frozen=True)
class RecognisedKalibr:
    """A kind of Kalibr; ``version`` is what it says of itself, None if nothing."""

    kind: KalibrKind
    version: str | None = None

    def __str__(self) -> str:
        name = KIND_NAMES[self.kind]
        return name if self.version is None else f"{name} ({self.version})"


def recognise_help(text: str) -> RecognisedKalibr | None:
    """The Kalibr that prints this as its help; None if no Kalibr does."""
    if any(option not in text for option in _OPTIONS):
        return None
    # Help texts are broken at the width of a terminal.
    words = " ".join(text.split())
    if IMITATION in words:
        return RecognisedKalibr("imitation")
    fork = FORK.search(words)
    if fork is not None:
        return RecognisedKalibr("fork", fork[0])
    return RecognisedKalibr("influx" if "--detection-coords" in text else "upstream")


def ask_which(place: Place) -> RecognisedKalibr:
    """Which Kalibr there is at a place."""
    with tempfile.TemporaryDirectory(prefix="influx-kalibr-") as folder:
        run = KalibrRun(("--help",), Path(folder) / "help.log")
        problem = "printed no help of a Kalibr"
        try:
            place.run(run, HELP_TIMEOUT_S, threading.Event())
        except RunFailed as error:
            problem = str(error)
        found = recognise_help(printed(run.log))
        if found is None:
            raise InputError(f"{COMMAND} --help of {place} {problem}{last_words(run.log)}.")
        return found
