"""What drives a service from outside, cheaply: batches that were encoded before the first is sent, readers of streams.

Sockets of the standard library alone, so that the load generator takes little of the machine that it measures.
"""

import json
import math
import selectors
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

Place = tuple[str, int]
_ANSWER_S = 10.0


def encode_batches(
    seconds: int, each: int, *, start: datetime, users: int, cells: int, kinds: int = 4
) -> list[list[bytes]]:
    """For every second from `start` on some batches of NDJSON, `each` events in a batch."""
    generator = np.random.default_rng(7)
    template = []
    for _ in range(kinds):
        micros = generator.integers(0, 1_000_000, each).tolist()
        people, places = generator.integers(0, users, each).tolist(), generator.integers(0, cells, each).tolist()
        lines = (
            f'{{"time":"YYYY-MM-DDTHH:MM:SS.{micro:06d}Z","user":"user-{one:07d}","cell":{place}}}\n'
            for micro, one, place in zip(micros, people, places, strict=True)
        )
        template.append("".join(lines).encode())
    moments = ((start + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S").encode() for second in range(seconds))
    return [[one.replace(b"YYYY-MM-DDTHH:MM:SS", moment) for one in template] for moment in moments]


@dataclass
class Sent:
    """What senders were told, and when."""

    accepted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    answers_s: list[float] = field(default_factory=list)
    seconds: dict[int, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    after: float = 0.0  # what was answered before does not count
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, answer: dict[str, Any], began: float, ended: float) -> None:
        with self.lock:
            if ended < self.after:
                return
            self.batches += 1
            self.accepted += answer["accepted"]
            for reason, number in answer["rejected"].items():
                self.rejected[reason] = self.rejected.get(reason, 0) + number
            self.answers_s.append(ended - began)
            second = int(ended)
            self.seconds[second] = self.seconds.get(second, 0) + answer["accepted"]


class Senders:
    """Threads that send batches of the present second, one after the other, each on a connection of its own.

    Args:
        place: where the service listens.
        token: that may send.
        batches: by second, from `start` on.
        start: when the first second begins.
        number: how many threads.
        per_second: how many batches all of them together send in a second; None: as many as are answered.
    """

    def __init__(
        self,
        place: Place,
        token: str,
        batches: list[list[bytes]],
        start: datetime,
        number: int,
        per_second: float | None = None,
    ) -> None:
        self._place, self._token, self._batches, self._start_s = place, token, batches, start.timestamp()
        self._number, self._pause_s = number, None if per_second is None else number / per_second
        self.sent = Sent()
        self._threads: list[threading.Thread] = []

    def begin(self, after: float) -> None:
        """Send from the first second on; only what is answered after a moment counts."""
        self.sent.after = after
        self._threads = [threading.Thread(target=self._send, args=(one,), daemon=True) for one in range(self._number)]
        for thread in self._threads:
            thread.start()

    def end(self) -> Sent:
        """Wait until the last second is over."""
        for thread in self._threads:
            thread.join()
        return self.sent

    def _send(self, one: int) -> None:
        try:
            with socket.create_connection(self._place, timeout=_ANSWER_S) as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._send_all(connection, one)
        except (OSError, ValueError, KeyError) as error:
            self.sent.failures.append(f"{type(error).__name__}: {error}")

    def _send_all(self, connection: socket.socket, one: int) -> None:
        head = (
            f"POST /v1/events HTTP/1.1\r\nHost: {self._place[0]}\r\nAuthorization: Bearer {self._token}\r\n"
            "Content-Type: application/x-ndjson\r\nIdempotency-Key: {}\r\nContent-Length: {}\r\n\r\n"
        )
        number, due = 0, max(time.time(), self._start_s) + (one / self._number) * (self._pause_s or 0.0)
        while True:
            time.sleep(max(0.0, due - time.time()))
            second = math.floor(time.time() - self._start_s)
            if second >= len(self._batches):
                return
            body = self._batches[second][(number + one) % len(self._batches[second])]
            began = time.time()
            connection.sendall(head.format(f"{one}-{number}", len(body)).encode() + body)
            status, answer = read_answer(connection)
            if status != 200:
                self.sent.failures.append(f"status {status}: {answer[:200]!r}")
                return
            self.sent.note(json.loads(answer), began, time.time())
            number += 1
            due = max(due + (self._pause_s or 0.0), time.time() - 1.0)  # what was missed is made up for, within limits


def read_answer(connection: socket.socket) -> tuple[int, bytes]:
    """Status and body of one answer that says how long it is."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _some(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next(int(line.partition(b":")[2]) for line in lines if line.startswith(b"content-length:"))
    while len(body) < length:
        body += _some(connection)
    return int(lines[0].split()[1]), body


def _some(connection: socket.socket) -> bytes:
    piece = connection.recv(65536)
    if not piece:
        raise OSError("the service hung up")
    return piece


class Readers:
    """Readers of the stream of releases, in one thread; some of them never take a byte after the first.

    Attributes:
        arrivals: when the first reader that is not stalled got each slot.
        received: how many releases each reader that is not stalled got.
        cut: how many stalled readers the service has cut off.
    """

    def __init__(self, place: Place, token: str, *, number: int, stalled: int, after: int = 0) -> None:
        self.arrivals: dict[int, float] = {}
        self.received = [0] * (number - stalled)
        self.cut = 0
        self._selector = selectors.DefaultSelector()
        self._over = threading.Event()
        self._stalled: list[socket.socket] = []
        ask = (
            f"GET /v1/releases/stream?after={after} HTTP/1.1\r\nHost: {place[0]}\r\nAccept: text/event-stream\r\n"
            f"Authorization: Bearer {token}\r\n\r\n"
        ).encode()
        for one in range(number):
            connection = socket.socket()
            if one < stalled:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(_ANSWER_S)
            connection.connect(place)
            connection.sendall(ask)
            connection.setblocking(False)
            if one < stalled:
                self._stalled.append(connection)
            else:
                self._selector.register(connection, selectors.EVENT_READ, one - stalled)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up."""
        self._over.set()
        self._thread.join()
        self.cut = _ended(self._stalled, 3.0)
        for connection in self._stalled:
            connection.close()

    def _read(self) -> None:
        rest = b""
        while not self._over.is_set():
            for key, _ in self._selector.select(timeout=0.1):
                connection, number = key.fileobj, key.data
                assert isinstance(connection, socket.socket)
                piece = connection.recv(1 << 20)
                if not piece:
                    self._selector.unregister(connection)
                    continue
                self.received[number] += piece.count(b"event: release")
                if number == 0:
                    rest = self._note(rest + piece)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]

    def _note(self, text: bytes) -> bytes:
        now = time.time()
        *lines, rest = text.split(b"\n")
        for line in lines:
            if line.startswith(b"id: "):
                self.arrivals.setdefault(int(line[4:]), now)
        return rest


def _ended(connections: list[socket.socket], seconds: float) -> int:
    """How many come to an end while all that waits is read: the other side has hung up."""
    ended, deadline = 0, time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ)
        while time.monotonic() < deadline and selector.get_map():
            for key, _ in selector.select(timeout=0.1):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                if not _piece(connection):
                    ended += 1
                    selector.unregister(connection)
    return ended


def _piece(connection: socket.socket) -> bytes:
    try:
        return connection.recv(1 << 20)
    except OSError:
        return b""


class Watching:
    """Memory and CPU of a process over time, from /proc."""

    def __init__(self, pid: int, every_s: float = 0.5) -> None:
        self._pid, self._every_s = pid, every_s
        self.memory_mb: list[float] = []
        self.begun_cpu_s = self.cpu_s()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def cpu_s(self) -> float:
        """User and system seconds so far."""
        with open(f"/proc/{self._pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100.0

    def close(self) -> float:
        """CPU seconds since the beginning."""
        self._over.set()
        self._thread.join()
        return self.cpu_s() - self.begun_cpu_s

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            with open(f"/proc/{self._pid}/statm", encoding="ascii") as file:
                pages = int(file.read().split()[1])
            self.memory_mb.append(pages * 4096 / 2**20)
