"""The pages, and what they are made of; all of it from this machine, nothing from elsewhere."""

from __future__ import annotations

import asyncio
import functools
import gzip
import importlib.util
from pathlib import Path

from anyio import to_thread
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

PAGES = Path(__file__).parent.parent / "pages"
_FILES = {"/": "index.html", "/choose": "choose.html", "/admin": "admin.html"}

router = APIRouter(include_in_schema=False)
_packing = asyncio.Lock()


def add_pages(app: FastAPI) -> None:
    """Serve the pages."""
    for path, name in _FILES.items():
        router_page = functools.partial(_page, name)
        app.add_api_route(path, router_page, methods=["GET"], include_in_schema=False, response_model=None)
    app.include_router(router)
    if PAGES.is_dir():
        app.mount("/static", StaticFiles(directory=PAGES), name="static")


async def _page(name: str) -> Response:
    path = PAGES / name
    if not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, media_type="text/html", headers={"Cache-Control": "no-store"})


@router.get("/static/plotly.min.js")
async def charts(request: Request) -> Response:
    """The charts' own program, as the installed package has it."""
    async with _packing:
        plain, packed, tag = await to_thread.run_sync(_charts)
    headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(packed, media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(plain, media_type="text/javascript", headers=headers)


@functools.cache
def _charts() -> tuple[bytes, bytes, str]:
    found = importlib.util.find_spec("plotly")
    file = None if found is None or found.origin is None else Path(found.origin).parent / "package_data/plotly.min.js"
    if file is None or not file.is_file():
        raise HTTPException(404)
    plain = file.read_bytes()
    return plain, gzip.compress(plain, 6, mtime=0), f'"{len(plain):x}-{file.stat().st_mtime_ns:x}"'
