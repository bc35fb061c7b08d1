"""Two hundred readers of the stream, some of which never read: everybody else gets everything, and memory stays flat."""

from __future__ import annotations

import json
import selectors
import socket
import time
from pathlib import Path

from tests.support.service_process import ServiceProcess, configure, running

READERS, STALLED = 200, 40


def memory_kb(process: int) -> int:
    """What a process holds in memory."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def connect(service: ServiceProcess, *, small: bool = False) -> socket.socket:
    opened = socket.socket()
    if small:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    opened.connect(("127.0.0.1", service.port))
    opened.sendall(b"GET /v1/releases/stream?after=0 HTTP/1.1\r\nHost: x\r\n\r\n")
    return opened


def read(readers: list[socket.socket], seconds: float) -> list[bytes]:
    """What readers get within some time."""
    found = {reader: bytearray() for reader in readers}
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            reader.setblocking(False)
            selector.register(reader, selectors.EVENT_READ)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for key, _ in selector.select(0.1):
                found[key.fileobj] += key.fileobj.recv(65_536)  # type: ignore[index, union-attr]
    return [bytes(found[reader]) for reader in readers]


def slots_of(text: bytes) -> list[int]:
    lines = [line for line in text.split(b"\n") if line.startswith(b"data: ") and line.endswith(b"}")]
    return [json.loads(line[6:])["slot"] for line in lines]


def test_readers_that_stall_cost_nobody_anything(tmp_path: Path) -> None:
    configure(
        tmp_path, slot="200ms", service="public = true", cells=",".join(f"cell-{number}" for number in range(100))
    )
    with running(tmp_path) as service:
        service.wait_for(3)
        stalled = [connect(service, small=True) for _ in range(STALLED)]
        readers = [connect(service) for _ in range(READERS - STALLED)]
        read(readers, 1.0)
        before = memory_kb(service.child.pid)
        first = service.committed()
        texts = read(readers, 5.0)
        after = memory_kb(service.child.pid)
        last = service.committed() - 1  # the last one may be on its way
        for text in texts:
            seen = slots_of(text)
            assert seen == list(range(seen[0], seen[-1] + 1))
            assert seen[0] <= first + 1
            assert seen[-1] >= last - 1
        assert last - first > 10
        assert after - before < 20_000, (before, after)
        for opened in (*stalled, *readers):
            opened.close()
        code, said = service.stop()
    assert code == 0, said
