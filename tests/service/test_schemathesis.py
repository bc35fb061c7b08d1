"""The OpenAPI document against the real process: no error of the server, and no answer that the document does not have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service_process import configure, running

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


@pytest.mark.slow
def test_every_call_is_as_the_document_says(tmp_path: Path) -> None:
    configure(tmp_path, slot="1s")
    with running(tmp_path) as service:
        service.wait_for(1)
        link = service.ask("POST", "/v1/users/ann/link", "enrol").json()["url"].partition("#")[2]
        service.ask("PUT", "/v1/users/ann/requirement", "enrol", json={"level": "High/Small"})
        for token, only in ((service.tokens["admin"], ()), (link, ("--include-path-regex", "^/v1/me"))):
            excluded = () if only else ("--exclude-path-regex", "^/v1/me|/stream$")
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.address}/openapi.json"),
                    *("--header", f"Authorization: Bearer {token}", "--checks", ",".join(CHECKS), "--seed", "1"),
                    *("--phases", "examples,coverage,fuzzing", "--max-examples", "30", "--generation-database", "none"),
                    *("--request-timeout", "10", "--no-color", "--warnings", "off", *only, *excluded),
                ],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert service.ask("GET", "/readyz", None).status_code == 200
        code, said = service.stop()
    assert code == 0, said
    assert "error" not in said.lower(), said
