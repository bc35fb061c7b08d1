"""`wevent token`."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import NamedTuple

import click

from wevent.cli.answers import NewTokenAnswer, PersonalLinkAnswer, TokenAnswer, TokensAnswer, as_json
from wevent.cli.commands import JournalGroup
from wevent.cli.console import new_table, print_table
from wevent.cli.flags import FOUND, chosen_journal, journal_flags
from wevent.cli.parameter_types import Word
from wevent.cli.standard_output import is_quiet, report, without_controls
from wevent.errors import InvalidOption, StorageFailed
from wevent.journal import JournalAddress
from wevent.publishing.configuration import parse_service, read_config
from wevent.service.tokens import ROLES, TokenRecord, Tokens, choosing_address, tokens_path
from wevent.settings import ServiceSettings
from wevent.settings.values import SECOND_US, format_time, parse_length, parse_time, parse_url

_LENGTH = re.compile(r"\s*\d{1,9}\s*[a-zA-Z]+\s*")
_FURTHEST_S = 100 * 366 * 86_400


class _Service(NamedTuple):
    """Where the tokens are, and what the configuration says of the service."""

    tokens: Tokens
    settings: ServiceSettings


@click.group("token", cls=JournalGroup, epilog="Example: wevent token run.journal create --role ingest --expires 90d")
@journal_flags
@click.pass_context
def command(context: click.Context, journal: JournalAddress | None, config: Path | None) -> None:
    """Manage access tokens and personal links of `wevent serve`. Works while the service runs.

    JOURNAL.tokens, or the file that `tokens` in [service] names, holds their hashes.
    """
    named = None if journal in (None, Path()) else journal
    path = chosen_journal(named, config)
    if named is not None:
        context.obj = _Service(Tokens(tokens_path(path)), ServiceSettings())
        return
    settings = parse_service(read_config(FOUND if config is None else config).get("service", {}))
    context.obj = _Service(Tokens(tokens_path(path, settings.tokens)), settings)


_JSON = click.option("--json", "wants_json", is_flag=True, help="Print one object.")


@command.command("create")
@click.option("--role", "roles", multiple=True, type=Word(*ROLES), help="What it may do; several may be given.")
@click.option("--name", default="", help="What it is for, in your words.")
@click.option("--expires", help="A duration such as 30d, or a time such as 2027-01-01T00:00:00Z.  [default: never]")
@_JSON
@click.pass_obj
def create(service: _Service, roles: tuple[str, ...], name: str, expires: str | None, wants_json: bool) -> None:
    """Create a token and print it. It cannot be shown again.

    ingest sends events, enrol registers people and makes their links, read reads releases, admin does everything.
    """
    made = service.tokens.create(roles, name=name, expires=None if expires is None else _moment(expires))
    record = made.record
    answer = NewTokenAnswer(
        token=made.text,
        id=record.id,
        name=record.name,
        roles=list(record.roles),
        expires=_time(record.expires),
        file=str(service.tokens.path),
    )
    try:
        click.echo(as_json(answer) if wants_json else made.text)
        sys.stdout.flush()
    except StorageFailed:
        service.tokens.revoke(record.id)  # nobody has seen it
        raise
    if not wants_json and not is_quiet():
        until = "it does not expire" if answer.expires is None else f"it expires at {answer.expires}"
        said = f"Token {record.id} for {', '.join(record.roles)}; {until}. It is shown this once; {answer.file} has a digest"
        click.echo(f"{said}.", err=True)


@command.command("list")
@_JSON
@click.pass_obj
def list_tokens(service: _Service, wants_json: bool) -> None:
    """List tokens with id, name, roles, creation, expiry and status."""
    tokens = service.tokens
    answer = TokensAnswer(file=str(service.tokens.path), tokens=[_answer(tokens, one) for one in tokens.records()])
    if wants_json:
        click.echo(as_json(answer))
        return
    if not answer.tokens:
        click.echo(f"No tokens in {answer.file}.")
        return
    table = new_table("Tokens", ("id", "name", "roles", "created", "expires", "state"), ())
    for one in answer.tokens:
        name = without_controls(one.name)
        table.add_row(one.id, name, ", ".join(one.roles), one.created, one.expires or "never", one.state)
    print_table(table)


@command.command("revoke")
@click.argument("id", metavar="ID")
@_JSON
@click.pass_obj
def revoke(service: _Service, /, wants_json: bool, **given: str) -> None:
    """Revoke a token. Takes effect immediately."""
    tokens = service.tokens
    answer = _answer(tokens, tokens.revoke(given["id"]))
    said = f"token {answer.id} is revoked"
    report(as_json(answer) if wants_json else said, "The token was revoked.", asked=wants_json)


@command.command("link")
@click.argument("user")
@click.option("--url", help="Where people reach the service.  [default: url of [service], or where it listens]")
@click.option("--expires", help="A duration such as 72h, or a time.  [default: link_hours of [service], or 72h]")
@_JSON
@click.pass_obj
def link(service: _Service, user: str, url: str | None, expires: str | None, wants_json: bool) -> None:
    """Create a personal link for a user and print it. It cannot be shown again."""
    address = parse_url(url or service.settings.url or f"http://{service.settings.listen}", "url")
    life_s = service.settings.link_hours * 3600 if expires is None else _moment(expires) - int(time.time())
    made = service.tokens.make_link(user, life_s)
    answer = PersonalLinkAnswer(url=choosing_address(address, made), expires=_time(made.record.expires) or "")
    click.echo(as_json(answer) if wants_json else answer.url)
    if not wants_json and not is_quiet():
        click.echo(f"It expires at {answer.expires}. Whoever has it can choose for this person.", err=True)


@command.command("unlink")
@click.argument("user")
@click.pass_obj
def unlink(service: _Service, user: str) -> None:
    """Revoke all personal links of a user."""
    service.tokens.end_links(user)
    report("the links that this person had are over", "They are over.")


def _answer(tokens: Tokens, record: TokenRecord) -> TokenAnswer:
    return TokenAnswer(
        id=record.id,
        name=record.name,
        roles=list(record.roles),
        state=tokens.state(record),
        created=_time(record.created) or "",
        expires=_time(record.expires),
        revoked=_time(record.revoked),
    )


def _time(second: int | None) -> str | None:
    return None if second is None else format_time(second * SECOND_US)


def _moment(text: str) -> int:
    """Return an expiry in seconds since 1970."""
    now = time.time()
    if _LENGTH.fullmatch(text):
        moment = int(now) + parse_length(text, "expires") // SECOND_US
    elif text[:4].isdecimal() and "-" in text:
        moment = parse_time(text, "expires") // SECOND_US
    else:
        moment = -1
    if not now < moment < now + _FURTHEST_S:
        raise InvalidOption(
            f"Invalid expiry {text!r}.",
            "Write a duration such as 30d, or a time in the next hundred years such as 2027-01-01T00:00:00Z.",
            option="expires",
        )
    return moment
