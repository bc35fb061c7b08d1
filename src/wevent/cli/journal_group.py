"""A group of commands that are all about one journal."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.cli.suggesting import SuggestingGroup


class JournalGroup(SuggestingGroup):
    """Takes the journal before the subcommand, or from the configuration where a subcommand comes first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """An empty argument stands for the journal that was left out."""
        values = [argument for argument in args if not argument.startswith("-")]
        named = values[1:2] if args[:1] == ["--config"] else values[:1]
        if named and named[0] in self.commands and not Path(named[0]).exists():
            args = [*args[: args.index(named[0])], "", *args[args.index(named[0]) :]]
        return super().parse_args(ctx, args)
