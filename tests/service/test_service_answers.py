"""What a sender is told is a function of that batch, the clock and public settings: never of who is registered, of what
others sent, or of how often (spec 1 and 10)."""

from __future__ import annotations

import gzip
import itertools
import json
import secrets
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.service.serving_process import Service

HOUR_S = 3600
BACK_S = 2 * HOUR_S + 600  # slot 3 began ten minutes ago
CELLS = ["north", "south"]
MEMBERS = [f"member-{number}" for number in range(20)]
STRANGERS = [f"stranger-{number}" for number in range(20)]
JSON, NDJSON = "application/json", "application/x-ndjson"

WHEN = {"now": 0, "late": -HOUR_S, "before": -4 * HOUR_S, "after": 3 * HOUR_S}
"""When an event was, in seconds from now; in a service that has slots of an hour."""


class Standing(NamedTuple):
    """A service whose slot stays open for the whole test, and what a sender needs."""

    service: Service
    tokens: Iterator[str]
    enrol: str


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    start = datetime.fromtimestamp(int(time.time()) - BACK_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    people = [(user, 4, 0.5) for user in MEMBERS]
    service = Service(tmp_path_factory.mktemp("answers") / "service", people, slot="1h", cells=CELLS, start=start)
    tokens = itertools.cycle([service.token("ingest") for _ in range(40)])
    enrol = service.token("enrol")
    service.start()
    yield Standing(service, tokens, enrol)
    service.close()


users = st.sampled_from([*MEMBERS, *STRANGERS, 7, "ünï"])
cells = st.sampled_from([*CELLS, "nowhere"])
events = st.tuples(st.sampled_from(list(WHEN)), users, cells)
batches = st.lists(events | st.sampled_from(["{}", "no record", '{"time": 1}', ""]), max_size=12)


def lines_of(batch: list[Any], now_s: float) -> bytes:
    rows = (
        row
        if isinstance(row, str)
        else json.dumps({"time": now_s + WHEN[row[0]], "user": row[1], "cell": row[2]}, ensure_ascii=False)
        for row in batch
    )
    return "".join(row + "\n" for row in rows).encode()


def expected(batch: list[Any]) -> dict[str, Any]:
    """The answer, worked out from the batch alone."""
    told: Counter[str] = Counter()
    for row in batch:
        if isinstance(row, str):
            told["no_record"] += bool(row)
        else:
            when, _, cell = row
            told[when if when != "now" else "unknown_cell" if cell not in CELLS else "accepted"] += 1
    accepted = told.pop("accepted", 0)
    return {"accepted": accepted, "rejected": {reason: number for reason, number in told.items() if number}}


def send(client: httpx.Client, token: str, lines: bytes, name: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": NDJSON}
    return client.post("/v1/events", content=lines, headers={**headers, **({"Idempotency-Key": name} if name else {})})


def told(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    """All that a sender gets to see but the date."""
    return answer.status_code, answer.content, [pair for pair in answer.headers.multi_items() if pair[0] != "date"]


@settings(suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture])
@given(batch=batches, others=st.lists(batches, max_size=3), named=st.booleans())
def test_an_answer_depends_on_its_batch_alone(
    standing: Standing, batch: list[Any], others: list[Any], named: bool
) -> None:
    service, tokens, enrol = standing
    name = secrets.token_hex(8) if named else None
    lines = lines_of(batch, time.time())
    with service.asker() as client:
        first = told(send(client, next(tokens), lines, name))
        assert (first[0], json.loads(first[1])) == (200, expected(batch))
        for other in others:  # under the same id, which belongs to another token
            assert send(client, next(tokens), lines_of(other, time.time()), name).status_code == 200
        client.put(
            "/v1/users/newcomer/requirement",
            json={"window": 4, "epsilon": 0.5},
            headers={"Authorization": f"Bearer {enrol}"},
        ).raise_for_status()
        last = next(tokens)
        again = [told(send(client, last, lines, name)) for _ in range(2)]
    assert [first, first] == again


@settings(suppress_health_check=[*settings().suppress_health_check, HealthCheck.function_scoped_fixture])
@given(batch=batches, swap=st.permutations(range(20)))
def test_members_and_strangers_are_answered_alike(standing: Standing, batch: list[Any], swap: list[int]) -> None:
    """The same batch with a stranger for every member, and the other way round."""
    people = dict(zip(MEMBERS, (STRANGERS[place] for place in swap), strict=True))
    people |= {stranger: member for member, stranger in people.items()}
    other = [row if isinstance(row, str) else (row[0], people.get(row[1], row[1]), row[2]) for row in batch]
    now_s = time.time()
    with standing.service.asker() as client:
        answers = [told(send(client, next(standing.tokens), lines_of(one, now_s), None)) for one in (batch, other)]
    assert answers[0] == answers[1]


def test_however_it_is_packed(standing: Standing) -> None:
    now_s = time.time()
    batch = [(when, user, cell) for when in WHEN for user in ("member-1", "stranger-1") for cell in (*CELLS, "nowhere")]
    lines = lines_of(batch, now_s)
    array = b"[" + b",\n".join(lines.splitlines()) + b"]"
    with standing.service.asker() as client:
        for body, kind in ((lines, NDJSON), (array, JSON)):
            for packed in (False, True):
                answer = client.post(
                    "/v1/events",
                    content=gzip.compress(body) if packed else body,
                    headers={
                        "Authorization": f"Bearer {next(standing.tokens)}",
                        "Content-Type": kind,
                        **({"Content-Encoding": "gzip"} if packed else {}),
                    },
                )
                assert answer.json() == expected(batch)


def test_an_id_for_other_content_is_refused_to_its_own_token_alone(standing: Standing) -> None:
    one, other = next(standing.tokens), next(standing.tokens)
    name, now_s = secrets.token_hex(8), time.time()
    first, second = (lines_of([("now", user, "north")], now_s) for user in ("member-1", "member-2"))
    with standing.service.asker() as client:
        assert [send(client, one, lines, name).status_code for lines in (first, second, first)] == [200, 409, 200]
        assert send(client, other, second, name).status_code == 200
