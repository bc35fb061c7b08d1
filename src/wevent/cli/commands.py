"""Groups of commands: suggestions for misspelt names, and the journal before a subcommand."""

from __future__ import annotations

from pathlib import Path

import click

from wevent.errors import did_you_mean


class SuggestingGroup(click.Group):
    """Group with a suggestion for a command that is misspelt."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            fix = did_you_mean(args[0], known, f"`{ctx.command_path} --help` lists the commands.")
            raise click.UsageError(f"Unknown command {args[0]!r}. {fix}", ctx)
        return super().resolve_command(ctx, args)


class JournalGroup(SuggestingGroup):
    """Group that takes the journal before the subcommand, or from the configuration if a subcommand comes first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert an empty argument for a journal that was left out."""
        values = [argument for argument in args if not argument.startswith("-")]
        named = values[1:2] if args[:1] == ["--config"] else values[:1]
        if named and named[0] in self.commands and not Path(named[0]).exists():
            args = [*args[: args.index(named[0])], "", *args[args.index(named[0]) :]]
        return super().parse_args(ctx, args)
