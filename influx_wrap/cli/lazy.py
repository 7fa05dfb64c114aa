"""A group whose commands are imported when they are used, so that help comes at once."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each with one line of help; ``package`` has a module for each, in
    which it is called ``command``."""

    def __init__(self, *args: Any, package: str, summaries: Mapping[str, str], **more: Any) -> None:
        super().__init__(*args, **more)
        self._package = package
        self._summaries = summaries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order given, which is that of the work."""
        return list(self._summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        if cmd_name not in self._summaries:
            return None
        command: click.Command = import_module(f"{self._package}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
