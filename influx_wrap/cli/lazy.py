"""A group whose commands are imported when they are used, so that help comes at once."""

from __future__ import annotations

import difflib
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the command that is probably meant."""
        close = difflib.get_close_matches(args[0], self._summaries, n=1, cutoff=0.5)
        if close and args[0] not in self._summaries and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {close[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._summaries.items()))
