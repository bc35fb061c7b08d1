"""A service that is none, and misbehaves: `WEVENT_MISBEHAVES=HOW python -m tests.support.broken_service …`.

"no token"    there is no token to be had
"no address"  it never says where it listens
"no start"    it says why it does not start
"no end"      it answers, with more words on standard error than a pipe holds, and does not stop when it is asked to
"""

from __future__ import annotations

import os
import signal
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        sys.stderr.write("a word of many\n" * 20_000)
        self.send_response(200)
        self.end_headers()


if __name__ == "__main__":
    how = os.environ["WEVENT_MISBEHAVES"]
    if "token" in sys.argv:
        print("a-token")
        sys.exit("no token today" if how == "no token" else 0)
    Path(os.environ["WEVENT_PROCESS"]).write_text(str(os.getpid()))
    if how == "no start":
        sys.exit("no port today")
    if how == "no address":
        time.sleep(3600)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        sys.stderr.write(f"Serving http://127.0.0.1:{server.server_port} (for ever).\n")
        server.serve_forever()
