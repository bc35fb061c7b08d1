"""The documented reverse proxy, run for real: TLS, streams at once, nothing of anybody in its logs and files."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.docs.blocks import read_blocks
from tests.support.commands import PATIENCE_S, wait_for
from tests.support.service_process import ServiceProcess, running
from wevent.client import Client, ServiceRefused

PAGE = Path(__file__).parents[2] / "docs/how-to/reverse-proxy.md"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
PERSON = "alice-4711"
CONFIGURATION = """
slot = "400ms"
grace = "300ms"
cells = ["north", "south"]
journal = "run.journal"
[levels.privacy]
High = 0.1
Low = 0.9
[levels.window]
Small = 4
Large = 8
[service]
listen = "127.0.0.1:0"
public = true
url = "https://stats.example"
requests_per_minute = 200
"""
MAIN = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/logs/main-error.log info;
events {{ worker_connections 512; }}
http {{
    access_log {folder}/logs/default.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/wevent.conf;
}}
"""

pytestmark = pytest.mark.slow


@dataclass
class Proxy:
    """A proxy that runs, and the service behind it."""

    folder: Path
    process: subprocess.Popen[bytes]
    url: str
    plain: str
    service: ServiceProcess

    def transport(self, **more: Any) -> httpx.HTTPTransport:
        return httpx.HTTPTransport(verify=ssl.create_default_context(cafile=str(self.folder / "cert.pem")), **more)

    def client(self, role: str | None = "admin", **more: Any) -> Client:
        token = None if role is None else self.service.tokens[role]
        return Client(self.url, token=token, transport=self.transport(), **more)

    def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        with httpx.Client(base_url=self.url, transport=self.transport(), timeout=PATIENCE_S) as client:
            return client.request(method, path, **more)

    def written(self) -> str:
        """All that nginx has written into any file."""
        files = [file for file in self.folder.rglob("*") if file.is_file() and file.suffix not in (".pem", ".conf")]
        return "\n".join(file.read_text(errors="replace") for file in files)


def free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])


def configure(folder: Path, service_port: int, tls: int, plain: int) -> None:
    """The block of the page, with a name, a certificate, files and ports of our own."""
    (text,) = (block.text for block in read_blocks(PAGE) if block.language == "nginx")
    text = re.sub(r"\n *listen \[::\]:.*", "", text)
    for before, after in (
        ("127.0.0.1:8080", f"127.0.0.1:{service_port}"),
        ("listen 443", f"listen {tls}"),
        ("listen 80;", f"listen {plain};"),
        ("stats.example;", "localhost;"),
        ("/etc/ssl/stats.example.pem", f"{folder}/cert.pem"),
        ("/etc/ssl/stats.example.key", f"{folder}/key.pem"),
        ("/var/log/nginx", f"{folder}/logs"),
    ):
        assert before in text, before
        text = text.replace(before, after)
    (folder / "logs").mkdir()
    (folder / "wevent.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*make, *names], cwd=folder, check=True, capture_output=True)


@contextmanager
def proxied(folder: Path, service: ServiceProcess, **changes: str) -> Iterator[Proxy]:
    """The proxy for the time of a block; `changes`: what lines of its configuration that begin so become instead."""
    tls, plain = free_port(), free_port()
    configure(folder, service.port, tls, plain)
    file = folder / "wevent.conf"
    for before, after in changes.items():
        text, number = re.subn(rf"(?m)^( *){before}\b.*$", rf"\1{after}", file.read_text())
        assert number, before
        file.write_text(text)
    assert NGINX is not None, "nginx is not installed; `make test` does it"
    process = subprocess.Popen([str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf")])
    found = Proxy(folder, process, f"https://localhost:{tls}", f"http://localhost:{plain}", service)
    try:
        with found.client("read") as client:
            client.about()
        for name in ("body", "proxy"):  # whoever wants a temporary file fails from here on
            shutil.rmtree(folder / name)
            (folder / name).write_text("")
        yield found
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    home = tmp_path_factory.mktemp("service")
    (home / "wevent.toml").write_text(CONFIGURATION)
    with running(home) as service, proxied(tmp_path_factory.mktemp("nginx"), service) as found:
        yield found


def test_the_whole_api_goes_through(proxy: Proxy) -> None:
    with proxy.client() as client:
        for person in (PERSON, "a/b c?d#e%2F", "ü.", ".."):
            assert client.set_requirement(person, level="High/Large").requirement.level == "High/Large"
            assert client.requirement(person).requirement.window == 8
        wait_for(
            lambda: client.send([{"time": datetime.now(UTC), "user": PERSON, "cell": "north"}]).accepted == 1, "room"
        )
        assert client.import_requirements(b"user,level\n1,Low/Small\n").added == 1
        link = client.link(PERSON)
        assert link.url.startswith("https://stats.example/choose#wel_")
    with Client(proxy.url, token=link.url.partition("#")[2], transport=proxy.transport()) as own:
        assert own.set_requirement(level="Low/Small").requirement.level == "Low/Small"
        own.end_link()


def test_releases_come_through_as_they_go_out(proxy: Proxy) -> None:
    """The service stands still after a release: what the proxy keeps back does not come then."""
    arrived = {"direct": 0, "proxied": 0}

    def follow(name: str, client: Client) -> None:
        with client:
            for release in client.stream(after=0):
                arrived[name] = release.slot
                if release.slot >= last:
                    return

    last = proxy.service.committed() + 20
    clients = {"direct": Client(proxy.service.address), "proxied": proxy.client(None)}
    threads = [threading.Thread(target=follow, args=pair, daemon=True) for pair in clients.items()]
    for thread in threads:
        thread.start()
    for slot in range(last - 12, last - 3, 4):
        wait_for(lambda slot=slot: arrived["direct"] > slot, f"slot {slot}")  # type: ignore[misc]
        os.kill(proxy.service.child.pid, signal.SIGSTOP)
        try:
            wait_for(lambda slot=slot: arrived["proxied"] >= slot, f"slot {slot} through the proxy")  # type: ignore[misc]
        finally:
            os.kill(proxy.service.child.pid, signal.SIGCONT)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert arrived == {"direct": last, "proxied": last}


def test_large_bodies_go_through_memory_only(proxy: Proxy) -> None:
    """The folders for temporary files are no folders any more."""
    line = b'{"time":"2026-01-01T00:00:00Z","user":"%s","cell":"north"}\n' % PERSON.encode()
    lines = line * (7_000_000 // len(line))
    headers = {**proxy.service.header("ingest"), "Content-Type": "application/x-ndjson"}
    answer = proxy.ask("POST", "/v1/events", content=lines, headers=headers)
    assert answer.status_code in (200, 413), answer.text  # too many events for one batch, says the service
    assert "problem+json" in answer.headers["content-type"] or answer.json()["rejected"]
    some = proxy.ask("POST", "/v1/events", content=line * 90_000, headers=headers)
    assert some.json()["rejected"] == {"before": 90_000}
    assert proxy.ask("GET", "/static/plotly.min.js").status_code in (200, 404)


def test_limits(proxy: Proxy) -> None:
    headers = {**proxy.service.header("admin"), "Content-Type": "application/x-ndjson"}
    assert proxy.ask("POST", "/v1/events", content=b"x" * 9_000_000, headers=headers).status_code == 413
    body = b"x" * 70_000
    assert proxy.ask("PUT", f"/v1/users/{PERSON}/requirement", content=body, headers=headers).status_code == 413
    for path in ("/metrics", "/readyz", "/healthz"):
        assert proxy.ask("GET", path, headers=proxy.service.header("admin")).status_code == 404


def test_nobody_evades_rate_limits_by_a_header(proxy: Proxy) -> None:
    with httpx.Client(base_url=proxy.url, transport=proxy.transport(), timeout=PATIENCE_S) as client:
        senders = itertools.cycle(range(250))
        found: set[int] = set()

        def is_limited() -> bool:
            found.add(client.get("/v1/about", headers={"X-Forwarded-For": f"10.0.0.{next(senders)}"}).status_code)
            return found == {200, 429}

        while not is_limited():
            assert found == {200}
    with httpx.Client(
        base_url=proxy.url, transport=proxy.transport(local_address="127.0.0.2"), timeout=PATIENCE_S
    ) as other:
        assert other.get("/v1/about").status_code == 200


def test_headers(proxy: Proxy) -> None:
    answer = proxy.ask("GET", "/v1/about", headers=proxy.service.header("read"))
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["server"] == "nginx"
    assert answer.http_version == "HTTP/1.1"


def test_without_tls(proxy: Proxy) -> None:
    with httpx.Client(base_url=proxy.plain, timeout=PATIENCE_S) as client:
        assert client.get("/v1/about").status_code == 403
        answer = client.get("/choose?x=1")
        assert (answer.status_code, answer.headers["location"]) == (301, "https://localhost/choose")


class TestUsualSettings:
    """These tests would notice: with what nginx does unless told, each fails."""

    def test_an_access_log_has_ids(self, proxy: Proxy, tmp_path: Path) -> None:
        with proxied(tmp_path, proxy.service, access_log=f"access_log {tmp_path}/logs/usual.log;") as usual:
            usual.ask("GET", f"/v1/users/{PERSON}", headers=proxy.service.header("enrol"))
            wait_for(lambda: PERSON in usual.written(), "the line, which nginx writes after its answer")

    def test_an_error_log_has_ids(self, proxy: Proxy, tmp_path: Path) -> None:
        with proxied(tmp_path, proxy.service, error_log=f"error_log {tmp_path}/logs/usual.log;") as usual:
            usual.ask("PUT", f"/v1/users/{PERSON}/requirement", content=b"x" * 70_000)
            wait_for(lambda: PERSON in usual.written(), "the line in the log of errors")

    def test_long_bodies_go_to_disk(self, proxy: Proxy, tmp_path: Path) -> None:
        headers = {**proxy.service.header("ingest"), "Content-Type": "application/x-ndjson"}
        with proxied(tmp_path, proxy.service, proxy_request_buffering="") as usual:
            assert usual.ask("POST", "/v1/events", content=b"{}\n" * 90_000, headers=headers).status_code == 500


def test_nothing_of_anybody_is_written(proxy: Proxy) -> None:
    """Whatever goes well or wrong: no id, token, query or event; also if the service is gone."""
    header = proxy.service.header("admin")
    for method in ("GET", "PUT", "DELETE", "POST", "PATCH", "HEAD"):
        for path in (f"/v1/users/{PERSON}/requirement", f"/v1/user/{PERSON}", f"/{PERSON}", f"/v1/releases?x={PERSON}"):
            proxy.ask(method, path, headers=header)
    proxy.ask("GET", f"/v1/users/{PERSON}%00/%2e%2e/%2e%2e/%2e%2e/%2e%2e/x", headers=header)
    proxy.ask("GET", f"/v1/users/{PERSON}", headers={**header, "Referer": f"https://x/{PERSON}", "User-Agent": PERSON})
    proxy.ask("GET", f"/v1/users/{PERSON}/{'x' * 9000}", headers={**header, "X-Long": "x" * 40_000})
    with httpx.Client(base_url=proxy.plain, timeout=PATIENCE_S) as client:
        client.get(f"/v1/users/{PERSON}", headers=header)
    with socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) as connection:
        connection.sendall(f"GET /v1/users/{PERSON} HTTP/1.1\r\n\r\n".encode())  # plain text where TLS is spoken
        connection.settimeout(PATIENCE_S)
        connection.recv(1000)
    os.kill(proxy.service.child.pid, signal.SIGSTOP)
    try:
        with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=proxy.url, transport=proxy.transport()) as client:
            client.get(f"/v1/users/{PERSON}", headers=header, timeout=1)
    finally:
        os.kill(proxy.service.child.pid, signal.SIGCONT)
    proxy.service.stop()
    assert proxy.ask("GET", f"/v1/users/{PERSON}", headers=header).status_code == 502
    with pytest.raises(ServiceRefused, match="The answer has status 502"), proxy.client(patience_s=0.5) as client:
        client.export(PERSON)
    written = proxy.written()
    assert "alice" not in written
    assert "4711" not in re.sub(r"\d{4}-\d\d-\d\dT\S+", "", written)
    for token in proxy.service.tokens.values():
        assert token not in written
        assert token.rpartition("_")[2] not in written
    assert "x=" not in written
    assert "127.0.0.1" not in (proxy.folder / "logs/wevent.log").read_text()
    log = (proxy.folder / "logs/wevent.log").read_text().splitlines()
    assert log
    route = (
        r"(/|/choose|/admin|/static|other|/v1/(about|levels|ledger|statement|releases|releases/stream|users|me|admin))"
    )
    for line in log:
        assert re.fullmatch(rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d\d:\d\d ([A-Z]+|-) {route} \d{{3}}", line), line
