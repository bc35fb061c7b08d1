"""The OpenAPI document against the running service: schemathesis makes requests of it, valid and not, and every answer is
one that the document has, with its status, type, headers and schema; no call fails."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.service.serving_process import Service
from tests.support.commands import PATIENCE_S

EXAMPLES = int(os.environ.get("WEVENT_SCHEMA_EXAMPLES", "20"))  # per call
# Deleted ids are kept while their choice is in force. Labels, levels and files may be as the document says and still mean
# nothing in this stream: `test_the_document_excludes_what_is_never_taken` has what the document must exclude.
CONFIGURATION = """
[checks]
use_after_free.enabled = false
ensure_resource_availability.enabled = false
[[operations]]
include-path-regex = "^/v1/(releases|users|me/requirement)"
checks.positive_data_acceptance.enabled = false
"""
STREAM = "/v1/releases/stream"
LABELS = ["north", "south", "o'brien \u00fc"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    people = [(str(number), 4, 0.5) for number in range(20)] + [("somebody", 8, 0.5)]
    made = Service(tmp_path_factory.mktemp("schema") / "service", people, slot="500ms", cells=LABELS)
    made.start("--log", "info")
    made.wait_until_committed(2, made.token("read"))
    yield made
    made.close()


def fuzz(service: Service, folder: Path, token: str, *more: str) -> None:
    """Let schemathesis ask."""
    (folder / "schemathesis.toml").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"]
    command += [
        f"{service.url}/openapi.json",
        "--header",
        f"Authorization: Bearer {token}",
    ]
    command += [
        "--max-examples",
        str(EXAMPLES),
        "--phases",
        "examples,coverage,fuzzing",
        "--request-timeout",
        str(PATIENCE_S),
    ]
    command += ["--generation-database", "none", "--warnings", "off", "--no-color", "--continue-on-failure", *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    asked = re.search(r"(\d+) generated", done.stdout)
    assert asked is not None
    assert int(asked[1]) > EXAMPLES


def test_every_call_answers_as_the_document_says(service: Service, tmp_path: Path) -> None:
    fuzz(service, tmp_path, service.token("admin"), "--exclude-path", STREAM)
    is_well(service)


def test_a_person_is_answered_as_the_document_says(service: Service, tmp_path: Path) -> None:
    """The last call would end the link that all the others are made with."""
    fuzz(service, tmp_path, service.link("7"), "--include-path-regex", "^/v1/me", "--exclude-path", "/v1/me/link")
    is_well(service)


REQUIREMENT = "/v1/users/{user}/requirement"
NEVER: list[tuple[str, str, str, Any, int]] = [
    ("put", REQUIREMENT, "application/json", {"level": None}, 400),
    ("put", REQUIREMENT, "application/json", {"epsilon": None, "level": None}, 400),
    ("put", REQUIREMENT, "application/json", {"window": None, "epsilon": 0.5}, 400),
    ("put", REQUIREMENT, "application/json", {"window": 4, "epsilon": 0.5, "level": None}, 200),
    ("post", "/v1/users", "text/csv", "", 400),
    ("post", "/v1/users", "application/x-ndjson", "", 400),
    ("post", "/v1/events", "application/json", [None, 17, "text", [], {}], 200),
    ("post", "/v1/events", "application/json", [], 200),
    ("post", "/v1/events", "application/x-ndjson", "", 200),
]


@pytest.mark.parametrize(("method", "path", "kind", "body", "status"), NEVER)
def test_the_document_excludes_what_is_never_taken(
    service: Service, method: str, path: str, kind: str, body: Any, status: int
) -> None:
    """A body is in the document if and only if it is taken."""
    content = body if isinstance(body, str) else json.dumps(body)
    with service.asker(service.token("admin")) as client:
        document = client.get("/openapi.json").json()
        answer = client.request(method, path.format(user="7"), content=content, headers={"Content-Type": kind})
    schema = document["paths"][path][method]["requestBody"]["content"][kind]["schema"]
    assert answer.status_code == status, answer.text
    known = jsonschema_rs.validator_for({**schema, "components": document["components"]})
    assert known.is_valid(body) == (status == 200)


@pytest.mark.parametrize("cells", ["", ",", " , "])
def test_no_cell_at_all_is_refused(service: Service, cells: str) -> None:
    with service.asker(service.token("read")) as client:
        document = client.get("/openapi.json").json()
        answer = client.get("/v1/releases", params={"cells": cells})
    parameters = document["paths"]["/v1/releases"]["get"]["parameters"]
    (schema,) = [parameter["schema"] for parameter in parameters if parameter["name"] == "cells"]
    assert answer.status_code == 400
    assert not jsonschema_rs.validator_for(schema).is_valid(cells)


def is_well(service: Service) -> None:
    assert not re.search(r" 5\d\d$|Traceback| failed, ", service.log, re.MULTILINE)
    assert service.is_ready()


@pytest.mark.parametrize(
    "kind", ["application/json", "application/x-ndjson", "text/csv", "application/vnd.apache.parquet"]
)
def test_releases_come_in_every_format_that_is_documented(service: Service, kind: str) -> None:
    with service.asker(service.token("read")) as client:
        document = client.get("/openapi.json").json()
        answer = client.get("/v1/releases", headers={"Accept": kind})
    assert kind in document["paths"]["/v1/releases"]["get"]["responses"]["200"]["content"]
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] == kind
    if kind == "application/x-ndjson":
        release = validator(document, "ReleasedSlot")
        assert all(release.is_valid(line) for line in parsed(answer.content.splitlines()))


def test_the_stream_answers_as_the_document_says(service: Service) -> None:
    """It has no end, so schemathesis cannot read it."""
    with service.asker(service.token("read")) as client:
        document = client.get("/openapi.json").json()
        responses = document["paths"][STREAM]["get"]["responses"]
        release = validator(document, "ReleasedSlot")
        asked: list[tuple[dict[str, str], dict[str, str], int]] = [
            ({"after": "0"}, {}, 200),
            ({"after": "9" * 18}, {}, 200),
            ({}, {"Last-Event-ID": "1"}, 200),
            ({"after": "x"}, {}, 400),
            ({"after": "9" * 19}, {}, 400),
            ({"after": "-1"}, {}, 400),
            ({}, {"Last-Event-ID": "x"}, 400),
            ({}, {"Accept": "application/json"}, 406),
        ]
        for query, headers, status in asked:
            with client.stream("GET", STREAM, params=query, headers=headers) as answer:
                assert answer.status_code == status
                assert answer.headers["content-type"].partition(";")[0] in responses[str(status)]["content"]
                if query == {"after": "0"}:
                    data = next(line for line in answer.iter_lines() if line.startswith("data: "))
                    assert release.is_valid(parsed([data[6:]])[0])


def validator(document: dict[str, Any], name: str) -> Any:
    """Whether something is one of the objects of the document."""
    return jsonschema_rs.validator_for({"$ref": f"#/components/schemas/{name}", "components": document["components"]})


def parsed(lines: list[Any]) -> list[Any]:
    return [json.loads(line) for line in lines]
