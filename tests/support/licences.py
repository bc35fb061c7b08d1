"""Under which licences come the packages that wevent needs: made from what is installed.

`python -m tests.support.licences` writes docs/reference/licences.md anew; a test looks for every package that pyproject.toml
names. Versions are left out, and what packages need in turn is as it was when the page was made: both change without us.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]
TARGET = ROOT / "docs/reference/licences.md"
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_NAME = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([\w,-]+)\])?")
_INTRODUCTION = """# Licences of dependencies

wevent is under the [MIT licence](../../LICENSE). It copies no code of others; what it needs is installed beside it. This
page is made from what the installed packages say of themselves, by `python -m tests.support.licences`; a test looks for
every package that `pyproject.toml` names. It is no legal advice: the files in the packages count.
"""


def page() -> str:
    """The whole page."""
    base = _own(_PROJECT["dependencies"])
    extras = {name: _own(needs) for name, needs in _PROJECT["optional-dependencies"].items() if name != "all"}
    parts = [_INTRODUCTION, "## To publish\n\n`pip install wevent`\n", *_table(base), ""]
    done = {*base}
    for name, own in extras.items():
        if name != "dev":
            parts += [
                f"## {name.capitalize()}\n\n`pip install 'wevent[{name}]'`, on top of the above\n",
                *_table(own),
                "",
            ]
            done |= {*own}
    in_turn = _needed_by(done) - done
    parts += ["## What these need in turn\n", *_table(sorted(in_turn)), ""]
    parts += ["## For development\n\nTests and tools; nothing of it is needed to publish, and nothing is shipped.\n"]
    return "\n".join([*parts, *_table(name for name in extras["dev"] if name not in done), ""])


def direct() -> set[str]:
    """Every package that pyproject.toml names."""
    lists = [_PROJECT["dependencies"], *_PROJECT["optional-dependencies"].values()]
    return {name for needs in lists for name in _own(needs)}


def licence_of(name: str) -> str:
    """What a package says of its licence, in a few words."""
    about = metadata.metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return str(expression)
    classes = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License :: ")
    ]
    said = str(about.get("License") or "").strip().split("\n")[0]
    return ", ".join(one for one in classes if one != "OSI Approved") or (
        said if 0 < len(said) < 60 else "see its files"
    )


def _own(needs: Iterable[str]) -> list[str]:
    names = (_normal(match[1]) for need in needs if (match := _NAME.match(need)))
    return sorted({name for name in names if name != "wevent"})


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _table(names: Iterable[str]) -> list[str]:
    rows = [f"| {name} | {licence_of(name)} | {_home(name)} |" for name in names]
    return ["| package | licence | home |", "|---|---|---|", *rows]


def _home(name: str) -> str:
    about = metadata.metadata(name)
    urls = dict(line.split(", ", 1) for line in about.get_all("Project-URL") or ())
    plain = {key.lower(): url for key, url in urls.items()}
    found = about.get("Home-page") or next((plain[key] for key in _PLACES if key in plain), "")
    return f"<{found}>" if found else ""


_PLACES = ("homepage", "home", "repository", "source", "source code", "github", "documentation")


def _needed_by(names: set[str]) -> set[str]:
    """What installed packages need on this machine, through all steps; of their extras those that are asked for."""
    found: set[str] = set()
    todo = sorted(names)
    while todo:
        package = todo.pop()
        for need in metadata.requires(package) or ():
            extra = re.search(r"extra == [\"']([\w-]+)", need)
            match = _NAME.match(need)
            if match is None or (extra and extra[1] not in _asked(package)):
                continue
            name = _normal(match[1])
            if name not in found and _is_installed(name):
                found.add(name)
                todo.append(name)
    return found


def _asked(package: str) -> set[str]:
    """The extras of a package that pyproject.toml asks for, as in `psycopg[binary]`."""
    lists = [_PROJECT["dependencies"], *_PROJECT["optional-dependencies"].values()]
    matches = [match for needs in lists for need in needs if (match := _NAME.match(need))]
    return {extra for match in matches if _normal(match[1]) == package for extra in (match[2] or "").split(",")}


def _is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
