"""A proxy in front of a PostgreSQL server that cuts connections: at once, or when a statement comes by.

It speaks TCP only. A statement is found by its text in what a client sends: those that matter are sent as plain text.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Cut = Literal["before", "after"]
"""Before the server gets the statement; or after it has answered, with the answer lost."""


class CuttingProxy:
    """Listens on a port of its own and passes everything on to a server on this machine, until it is told to cut.

    Args:
        server: the server's port.

    Attributes:
        port: where it listens.
        cuts: how many connections it has cut.
    """

    def __init__(self, server: int) -> None:
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.cuts = 0
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._wanted: tuple[bytes, Cut] | None = None
        self._refusing = False
        self._flowing = threading.Event()
        self._flowing.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Cut every connection that is open now."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._end(pair)

    def cut_at(self, statement: bytes, when: Cut) -> None:
        """Cut the connection over which a statement comes by next, once."""
        self._wanted = statement, when

    def refuse(self, refusing: bool) -> None:
        """Whether new connections are turned away."""
        self._refusing = refusing

    def freeze(self) -> None:
        """Pass nothing on, and keep every connection open."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Pass everything on again, first what waited."""
        self._flowing.set()

    def close(self) -> None:
        """End it."""
        self._listening.close()
        self.thaw()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = None if self._refusing else self._connected()
                if server is None:
                    _reset(client)
                    continue
                with self._lock:
                    self._pairs.add((client, server))
                threading.Thread(target=self._pass_on, args=((client, server),), daemon=True).start()

    def _connected(self) -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", self._server))
        except OSError:  # the server is down; the proxy stays up
            return None

    def _pass_on(self, pair: tuple[socket.socket, socket.socket]) -> None:
        client, server = pair
        with suppress(OSError, ValueError):
            while True:
                ready, _, _ = select.select(pair, [], [])
                self._flowing.wait()
                for source in ready:
                    data = source.recv(1 << 16)
                    if not data:
                        return self._end(pair, cut=False)
                    wanted = self._wanted
                    if source is client and wanted is not None and wanted[0] in data:
                        self._wanted = None
                        if wanted[1] == "after":
                            server.sendall(data)
                            server.recv(1 << 16)  # the answer, which nobody hears
                        return self._end(pair)
                    (server if source is client else client).sendall(data)
        return self._end(pair, cut=False)

    def _end(self, pair: tuple[socket.socket, socket.socket], *, cut: bool = True) -> None:
        with self._lock:
            if pair not in self._pairs:
                return
            self._pairs.discard(pair)
            self.cuts += cut
        for one in pair:
            _reset(one)


def _reset(one: socket.socket) -> None:
    """End a connection as a broken network does: without a word."""
    with suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def cut_once(proxy: CuttingProxy, step: str) -> Callable[[str], None]:
    """A hook that cuts every connection at the first labelled step of this name."""
    reached: list[str] = []

    def at(label: str) -> None:
        if label == step and not reached:
            reached.append(label)
            proxy.cut()

    return at
