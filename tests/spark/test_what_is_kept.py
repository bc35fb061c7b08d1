"""What Spark keeps of events: in the checkpoint until soon after their slot is out, in shuffles encrypted only."""

from __future__ import annotations

import secrets
import time
from pathlib import Path

from pyspark.sql import SparkSession

import wevent.spark
from tests.spark.live import Feed, clock_of, settings
from tests.support.commands import slots_of
from wevent import Requirement

KEPT = 20
"""Batches that Spark may keep an event for after its slot is out; the documentation says so."""


def bytes_in(folder: Path) -> bytes:
    """Everything in all files, as far as they are still there."""
    found = []
    for file in list(folder.rglob("*")):
        try:
            found.append(file.read_bytes() if file.is_file() else b"")
        except FileNotFoundError:
            continue
    return b"\n".join(found)


def test_events_do_not_stay(spark: SparkSession, local_folder: Path, tmp_path: Path) -> None:
    feed, checkpoint, out = Feed(tmp_path / "in"), tmp_path / "checkpoint", tmp_path / "out.ndjson"
    names = [f"u{secrets.token_hex(8)}" for _ in range(500)]
    query = wevent.spark.publish(
        feed.stream(spark),
        journal=tmp_path / "run.journal",
        checkpoint=checkpoint,
        out=out,
        **settings(grace="0s", requirements={name: Requirement(1, 50) for name in names}),
    )
    sent: dict[str, float] = {}
    out_since: dict[str, int] = {}
    longest = -1
    while longest < 0 or batches_of(checkpoint) < max(out_since.values()) + KEPT + 2:
        for name in names[len(sent) : len(sent) + 1]:
            sent[name] = time.time()
            feed.send((sent[name], name, "north"))
        time.sleep(0.2)
        released, batch = slots_of(out), batches_of(checkpoint)
        state = bytes_in(checkpoint / "state")
        if not released:
            continue
        clock = clock_of(out)
        for name, since in sent.items():
            if clock.slot_of(round(since * 1e6)) <= released[-1] and (longest < 0 or len(out_since) < 20):
                out_since.setdefault(name, batch)
            if name in out_since and name.encode() in state:
                longest = max(longest, batch - out_since[name])
    query.stop()
    assert 0 <= longest <= KEPT
    shuffled = b"".join(bytes_in(blocks) for blocks in local_folder.glob("blockmgr-*"))
    assert len(shuffled) > 10_000
    assert not any(name.encode() in shuffled for name in sent)


def batches_of(checkpoint: Path) -> int:
    """The last batch that is done."""
    return max((int(file.name) for file in checkpoint.glob("commits/[0-9]*")), default=-1)
