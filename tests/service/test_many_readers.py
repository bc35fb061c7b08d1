"""Two hundred readers of the stream, some of which never read: everybody else gets everything, and memory stays flat."""

from __future__ import annotations

import json
import selectors
import socket
import time
from pathlib import Path

from tests.support.commands import PATIENCE_S
from tests.support.service_process import ServiceProcess, configure, running

READERS, STALLED = 200, 40


def memory_kb(process: int) -> int:
    """What a process holds in memory."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def connect(service: ServiceProcess, number: int, *, small: bool = False) -> socket.socket:
    """A reader; each has an address of its own, as if through a proxy."""
    opened = socket.socket()
    if small:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    opened.connect(("127.0.0.1", service.port))
    opened.sendall(
        b"GET /v1/releases/stream?after=0 HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.0.%d\r\n\r\n" % number
    )
    return opened


def read(readers: dict[socket.socket, bytearray], last: int) -> None:
    """Add what readers get, until each has begun the slot after the last one."""
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            reader.setblocking(False)
            selector.register(reader, selectors.EVENT_READ)
        deadline = time.monotonic() + PATIENCE_S
        while selector.get_map():
            assert time.monotonic() < deadline, f"slot {last} has not come"
            for key, _ in selector.select(0.1):
                text = readers[key.fileobj]  # type: ignore[index]
                text += key.fileobj.recv(65_536)  # type: ignore[union-attr]
                if b"id: %d\n" % (last + 1) in text[-200_000:]:
                    selector.unregister(key.fileobj)


def slots_of(text: bytearray) -> list[int]:
    lines = text[: text.rfind(b"\n\n")].split(b"\n")
    return [json.loads(line[6:])["slot"] for line in lines if line.startswith(b"data: ")]


def test_readers_that_stall_cost_nobody_anything(tmp_path: Path) -> None:
    configure(
        tmp_path, slot="200ms", service="public = true", cells=",".join(f"cell-{number}" for number in range(100))
    )
    with running(tmp_path) as service:
        service.wait_for(3)
        stalled = [connect(service, number, small=True) for number in range(STALLED)]
        readers = {connect(service, number): bytearray() for number in range(STALLED, READERS)}
        first = service.committed()
        read(readers, first)
        before = memory_kb(service.child.pid)
        read(readers, first + 20)
        after = memory_kb(service.child.pid)
        for text in readers.values():
            seen = slots_of(text)
            assert seen == list(range(1, len(seen) + 1))
            assert len(seen) >= first + 20
        assert after - before < 20_000, (before, after)
        for opened in (*stalled, *readers):
            opened.close()
        code, said = service.stop()
    assert code == 0, said
