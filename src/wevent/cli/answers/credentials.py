"""What commands about the service's tokens answer. No answer but that of `create` and `link` has a secret in it."""

from __future__ import annotations

from wevent.cli.answers.answer import Answer


class TokenAnswer(Answer):
    """`wevent token JOURNAL revoke --json`, and one token of the list.

    Attributes:
        id: its public part.
        name: what it is for, in the operator's words.
        roles: what it may do.
        state: valid, expired or revoked.
        created: when it was made.
        expires: from when on it admits nobody; null: never.
        revoked: when it was revoked; null: it was not.
    """

    id: str
    name: str
    roles: list[str]
    state: str
    created: str
    expires: str | None
    revoked: str | None


class TokensAnswer(Answer):
    """`wevent token JOURNAL list --json`.

    Attributes:
        file: where they are kept.
        tokens: in the order they were made.
    """

    file: str
    tokens: list[TokenAnswer]


class NewTokenAnswer(Answer):
    """`wevent token JOURNAL create --json`.

    Attributes:
        token: the token itself: a secret that is shown this once and kept nowhere.
        id: its public part.
        name: what it is for, in the operator's words.
        roles: what it may do.
        expires: from when on it admits nobody; null: never.
        file: where its digest is kept.
    """

    token: str
    id: str
    name: str
    roles: list[str]
    expires: str | None
    file: str


class PersonalLinkAnswer(Answer):
    """`wevent token JOURNAL link --json`.

    Attributes:
        url: the link: a secret of that person, kept nowhere.
        expires: from when on it admits nobody.
    """

    url: str
    expires: str
