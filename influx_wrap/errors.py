"""The one exception for mistakes a user can make or mend.

Its message is a sentence that names the file, line, view or option, what is
wrong there and what to do about it. The command line prints it without a
traceback and exits with code 2.
"""

import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

LONGEST_WORD, LONGEST = 400, 4000
"""Longer words and messages come from files, and are of no use."""
_LONG = re.compile(rf"\S{{{LONGEST_WORD + 1},}}")


class InputError(ValueError):
    """Something the caller handed in cannot be used; the message says what to do.

    What it quotes may come from anybody's file, so what cannot be printed, such as what moves a
    terminal's cursor, is escaped, and what is endless is shortened.

    instead  what was given and what was probably meant: the same command with the second in place
             of the first mends it
    command  another command that mends it
    """

    def __init__(
        self,
        message: str,
        *,
        instead: tuple[str, str] | None = None,
        command: str | None = None,
    ) -> None:
        self.instead = instead
        self.command = command
        text = _LONG.sub(_shortened, _printable(message))
        if len(text) > LONGEST:
            text = f"{text[: LONGEST - 1000]} ... {text[-500:]}"
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        """It travels between processes, whatever a subclass is made from."""
        return _rebuilt, (type(self), self.args, vars(self))


def _rebuilt(kind: type[InputError], args: tuple[object, ...], said: dict[str, object]) -> object:
    error = kind.__new__(kind, *args)
    vars(error).update(said)
    return error


def _printable(message: str) -> str:
    if message.isprintable():
        return message
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1]
        for letter in message
    )


def _shortened(word: re.Match[str]) -> str:
    text = word[0]
    return f"{text[:100]}...{text[-20:]}"


def install_line(extra: str) -> str:
    """The command that adds an extra of the package to the Python that runs, to be pasted."""
    what = f"'influx_wrap[{extra}]'"
    pip = shutil.which("pip")
    if pip is not None and Path(pip).parent == Path(sys.executable).parent:
        return f"pip install {what}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        return f"uv pip install {what} --python {python}"
    return f"{python} -m pip install {what}"
