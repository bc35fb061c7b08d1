"""Health, metrics, the administrator's overview, and the pages.

Metrics have public numbers of slots and budgets, nothing of events. The difference of two totals is a count: a total of
events, read every slot, would publish the number of its events.
"""

from __future__ import annotations

import functools
import gzip
from importlib import resources
from pathlib import Path
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from wevent.core.budget import decimal_text
from wevent.journal import Journal
from wevent.journal.terms import program_versions
from wevent.publishing.views import read_levels
from wevent.schemas import BudgetTable, Health, Overview, Readiness
from wevent.service.access import needs
from wevent.service.context import Context, json_answer
from wevent.service.openapi import described, json_content
from wevent.service.publishing_thread import PublisherState
from wevent.streams.clock import wall_clock_us

router = APIRouter(tags=["operator"])
PAGES = Path(__file__).parent / "pages"
_PAGE_FILES = {"/": "index.html", "/choose": "choose.html", "/admin": "admin.html"}
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_ADMIN = [Depends(needs("admin"))]
_READY: dict[str, Any] = described(Readiness, access="none")
_READY["responses"][503] = {
    "description": "The publisher does not run, is over three slots behind or ahead of the clock, its database is away, or "
    "batches cannot be stored.",
    "content": json_content(Readiness),
}


@router.get("/healthz", **described(Health, access="none"))
async def healthz() -> Response:
    """Return ok: the process answers."""
    return json_answer(Health(status="ok"))


@router.get("/readyz", **_READY)
async def readyz(request: Request) -> Response:
    """Check that the publisher runs and keeps up, and that batches can be stored; also before the journal can be read."""
    state: PublisherState = request.app.state.context.state
    condition = state.condition
    reply = Readiness(status=condition, role=state.role, clock="jumped" if wall_clock_us.has_jumped() else "steady")
    return json_answer(reply, 200 if condition == "ready" else 503)


@router.get("/metrics", dependencies=_ADMIN, **described({"text/plain": {"schema": {"type": "string"}}}))
async def metrics(context: Context) -> Response:
    """Return slots, budgets and users for Prometheus; nothing of events."""
    feed, state = context.feed, context.state
    budgets = await context.reader.once("ledger", feed.committed, context.budgets.read)
    text = _metrics_text(budgets, feed.committed, feed.fresh, state.behind, storing=state.storing)
    return Response(text, media_type=_METRICS)


@router.get("/v1/admin/overview", dependencies=_ADMIN, **described(Overview))
async def overview(context: Context) -> Response:
    """Return the status of the service; it is independent of all events."""
    facts = await context.reader.ask(_overview_facts)
    feed, state, recent = context.feed, context.state, context.feed.recent
    return json_answer(
        Overview(
            **facts,
            levels=await context.reader.once("levels", feed.committed, read_levels),
            committed=feed.committed,
            next_due=state.next_due,
            slots_behind=state.behind,
            fresh_rate=sum(recent) / len(recent) if recent else None,
            recent_slots=len(recent),
            ready=state.condition == "ready",
            role=state.role,
        )
    )


def _overview_facts(journal: Journal) -> dict[str, Any]:
    """Return the fields of `Overview` that come from the journal."""
    head = journal.head()
    terms, writer = head.epoch.terms, journal.writer()
    return {
        "stream": terms.stream,
        "mechanism": terms.mechanism,
        "epoch": head.epoch.number,
        "members": sum(journal.registry.sizes().values()),
        "pending_changes": journal.registry.pending(),
        "committed_start": terms.slot_start(head.committed) if head.committed else None,
        "unsafe": list(head.unsafe),
        "writer_since": None if writer is None else writer.since,
        "writer_host": None if writer is None else writer.host,
        "versions": program_versions(),
    }


def _metrics_text(budgets: BudgetTable, committed: int, fresh: int, behind: int, *, storing: bool) -> str:
    """Return all metrics; `behind` is negative if releases are ahead of the clock."""
    rows = [
        (f'{{window="{row.window}",epsilon="{decimal_text(round(row.epsilon * 1e9))}"}}', row)
        for row in budgets.classes
    ]
    lines: list[str] = []
    for name, kind, text, values in (
        ("slots_total", "counter", "Slots released.", {"": committed}),
        ("fresh_slots_total", "counter", "Fresh releases since the service started.", {"": fresh}),
        ("slots_behind", "gauge", "Releases that are due and not out; below 0: ahead of the clock.", {"": behind}),
        ("can_store_batches", "gauge", "1 if batches can be stored, 0 if not.", {"": int(storing)}),
        ("budget_left_epsilon", "gauge", "Largest charge of the next slot to a class.", {k: r.left for k, r in rows}),
        ("users", "gauge", "Users counted in a class.", {k: r.users for k, r in rows}),
    ):
        lines += [f"# HELP wevent_{name} {text}", f"# TYPE wevent_{name} {kind}"]
        lines += [f"wevent_{name}{labels} {value}" for labels, value in values.items()]
    return "\n".join(lines) + "\n"


def add_pages(app: FastAPI) -> None:
    """Serve the pages."""
    for path, name in _PAGE_FILES.items():
        page = functools.partial(_page, name)
        app.add_api_route(path, page, methods=["GET"], include_in_schema=False, response_model=None)
    app.add_api_route("/static/plotly.min.js", _chart_program, methods=["GET"], include_in_schema=False)
    app.mount("/static", StaticFiles(directory=PAGES), name="static")


async def _page(name: str) -> Response:
    return FileResponse(PAGES / name, media_type="text/html", headers={"Cache-Control": "no-store"})


async def _chart_program() -> Response:
    """Return the program of the charts from the installed package; every browser unpacks gzip."""
    headers = {"Cache-Control": "max-age=86400", "Content-Encoding": "gzip"}
    return Response(await to_thread.run_sync(_pack_charts), media_type="text/javascript", headers=headers)


@functools.cache
def _pack_charts() -> bytes:
    return gzip.compress(resources.files("plotly").joinpath("package_data/plotly.min.js").read_bytes(), 6, mtime=0)
