"""A group of commands that says which one was probably meant."""

from __future__ import annotations

import click

from wevent.errors import did_you_mean


class SuggestingGroup(click.Group):
    """As click's, with a suggestion for a command that is misspelt."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of that name, or one sentence."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            remedy = did_you_mean(args[0], known, f"`{ctx.command_path} --help` lists the commands.")
            raise click.UsageError(f"Expected a command; received {args[0]!r}. {remedy}", ctx)
        return super().resolve_command(ctx, args)
