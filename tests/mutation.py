"""Measure the tests: a fixed-seed sample of mutants of core, commit and recovery, and how many of them the tests kill.

python -m tests.mutation [--root CHECKOUT] [--number 500] [--seed 1] [--jobs 2] [--only core/ledger.py]

A mutant is one change of the syntax tree: a comparison, an arithmetic or a boolean operator is swapped, a constant moves by
one, a statement is removed, a function returns None. The tests that call the changed function run in a forked process whose
sources have the change. A first run, in which functions note that they are called, finds these tests; a test that does not
pass there counts for nothing. The tool needs nothing of the package: `--root` names any checkout.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import compileall
import contextlib
import importlib
import multiprocessing
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any, NamedTuple

import pytest

GROUPS = {  # each is a third of the sample
    "ledger, permit, noise": "core/ledger.py core/permit.py noise/*.py",
    "core": "core/*.py core/pft/*.py",
    "commit and recovery": "journal/**/*.py publishing/loop.py publishing/staleness.py publishing/restor*.py",
}
NEEDS_A_SERVER = ("postgres", "lease", "connection", "__init__")
TESTS = "unit/core unit/noise unit/publisher unit/people unit/journal unit/publishing contract golden property zoo"
PRELOADED = ["numpy", "opendp.prelude", "hypothesis", "apsw", "msgspec", "duckdb", "pyarrow", "click", "rich"]
ENOUGH_S = 60.0  # of the quickest tests of a function
LONGEST_S = 600.0  # of one file of tests in the first run
PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, Add Sub, Mult FloorDiv, LShift RShift, BitAnd BitOr, And Or"
SWAPS = {ast.Div: ast.Mult, ast.Mod: ast.FloorDiv}
for first, second in (pair.split() for pair in PAIRS.split(", ")):
    SWAPS |= {getattr(ast, first): getattr(ast, second), getattr(ast, second): getattr(ast, first)}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
NOTE = "_called"  # a set among the builtins, of functions as (file, first line)
_Called = dict[str, tuple[float, frozenset[tuple[str, int]]]]  # seconds and functions of tests


class Change(NamedTuple):
    """A change that can be made in a tree, the line of the function around it, and the text before and after."""

    line: int
    function: int
    before: str
    make: Callable[[], Any]


class Mutant(NamedTuple):
    """One changed source file; function 0 is the module."""

    group: str
    file: str
    function: int
    words: str
    source: str


class Task(NamedTuple):
    """Tests to run, and the file that differs from the checkout's: a mutant, or none in the first run."""

    tests: list[str]
    seconds: float
    mutant: Mutant | None = None


def changes(tree: ast.Module) -> Iterator[Change]:
    """Yield every change of a tree in a fixed order."""

    def visit(node: Any, function: int) -> Iterator[Change]:
        function = node.lineno if isinstance(node, FUNCTIONS) else function
        for name, value in swaps(node):
            yield Change(node.lineno, function, ast.unparse(node), partial(setattr, node, name, value))
        for name, field in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for place, child in enumerate(field if isinstance(field, list) else [field]):
                if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                    continue
                if is_removable(child):
                    yield Change(
                        child.lineno, function, ast.unparse(child), partial(field.__setitem__, place, ast.Pass())
                    )
                yield from visit(child, function)

    return visit(tree, 0)


def swaps(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield attributes of a node that change, and their values."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield "ops", [SWAPS[type(node.ops[0])](), *node.ops[1:]]
    elif isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)) and type(node.op) in SWAPS:
        yield "op", SWAPS[type(node.op)]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "operand", ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "value", not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        yield "value", node.value + 1
        yield "value", node.value - 1
    elif isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield "value", ast.Constant(None)


def is_removable(node: ast.AST) -> bool:
    """Return whether a statement is a call, an error or a change of an object."""
    is_change = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Name)
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_change or is_call or isinstance(node, (ast.AugAssign, ast.Raise))


def source_files(sources: Path) -> Iterator[tuple[str, list[Path]]]:
    """Yield name and files of every group."""
    taken: set[Path] = set()
    for group, patterns in GROUPS.items():
        found = {path for pattern in patterns.split() for path in sources.glob(f"wevent/{pattern}")} - taken
        taken |= found
        yield group, sorted(path for path in found if not path.stem.startswith(NEEDS_A_SERVER))


def draw_mutants(sources: Path, number: int, seed: int, only: str) -> Iterator[Mutant]:
    """Yield a sample of all mutants, the same for the same sources, number and seed."""
    for group, files in source_files(sources):
        texts = {path: path.read_text(encoding="utf-8") for path in files if only in str(path)}
        sites = [(path, at) for path, text in texts.items() for at, _ in enumerate(changes(ast.parse(text)))]
        wanted = min(len(sites), number if only else number // len(GROUPS))
        for path, at in sorted(random.Random(seed).sample(sites, wanted)):
            tree = ast.parse(texts[path])
            change = list(changes(tree))[at]
            plain = ast.unparse(tree)
            change.make()
            source = ast.unparse(ast.fix_missing_locations(tree))
            lines = zip(plain.splitlines(), source.splitlines(), strict=False)
            after = next((new.strip() for old, new in lines if old != new), "")
            file = str(path.relative_to(sources))
            before = change.before.partition("\n")[0]
            words = f"{file}:{change.line}: {before[:70]} → {after[:90]}"
            yield Mutant(group, file, change.function, words, source)


def note_calls(path: Path, name: str) -> None:
    """Let every function of a file note that it is called."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]:
        place = int(ast.get_docstring(node) is not None)
        node.body.insert(place, ast.parse(f"{NOTE}.add(({name!r}, {node.lineno}))").body[0])
    path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")


class Recorder:
    """A plugin that collects which functions each test calls, and which tests do not pass."""

    def __init__(self) -> None:
        self.called: _Called = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        getattr(builtins, NOTE).clear()
        begun = time.perf_counter()
        yield
        self.called[item.nodeid] = time.perf_counter() - begun, frozenset(getattr(builtins, NOTE))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


def prepare(root: Path, folder: Path, is_first: bool) -> None:
    """Give a worker a copy of the sources, and import what takes long but nothing of the package."""
    global ROOT, COPY
    ROOT, COPY = root, Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(root / "src", COPY / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path in [path for _, files in source_files(COPY / "src") for path in files if is_first]:
        note_calls(path, str(path.relative_to(COPY / "src")))
    compileall.compile_dir(COPY / "src", quiet=2)
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def run(task: Task) -> tuple[bool, _Called]:
    """Return whether all tests pass in a child of the worker; in the first run also what each called."""
    (COPY / "result").unlink(missing_ok=True)
    shutil.rmtree(COPY / "tmp", ignore_errors=True)
    (COPY / "tmp").mkdir()
    if (child := os.fork()) == 0:
        os._exit(_run_here(task))
    deadline, done = time.monotonic() + task.seconds, 0
    while not done and time.monotonic() < deadline:
        time.sleep(0.02)
        done, status = os.waitpid(child, os.WNOHANG)
    if not done:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if task.mutant is not None:
        shutil.copy(ROOT / "src" / task.mutant.file, COPY / "src" / task.mutant.file)
    called = pickle.loads((COPY / "result").read_bytes()) if (COPY / "result").exists() else {}
    return status == 0, called


def _run_here(task: Task) -> int:
    os.setsid()
    for stream in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    os.chdir(ROOT)
    tempfile.tempdir, sys.dont_write_bytecode = str(COPY / "tmp"), True
    os.environ |= {"PYTHONPATH": str(COPY / "src"), "TMPDIR": tempfile.tempdir, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.path[:] = [str(COPY / "src"), *sys.path]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # those of this tool's checkout
    options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-seed=1"]
    if task.mutant is not None:
        path = COPY / "src" / task.mutant.file
        path.write_text(task.mutant.source, encoding="utf-8")
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        return int(pytest.main([*options, "-x", *task.tests]))
    setattr(builtins, NOTE, set())
    recorder = Recorder()
    pytest.main([*options, *task.tests], plugins=[recorder])
    passed = {test: found for test, found in recorder.called.items() if test not in recorder.failed}
    (COPY / "result").write_bytes(pickle.dumps(passed))
    return 0


def choose(mutant: Mutant, recorded: _Called) -> Task:
    """Return the quickest tests that call the changed function."""
    chosen, total = list[str](), 0.0
    for test, (seconds, called) in sorted(recorded.items(), key=lambda one: one[1][0]):
        is_of_module = mutant.function == 0 and any(file == mutant.file for file, _ in called)
        if (is_of_module or (mutant.file, mutant.function) in called) and total + seconds <= ENOUGH_S:
            chosen, total = [*chosen, test], total + seconds
    return Task(chosen, 60 + 10 * total, mutant)


def describe(killed: list[Mutant], survived: list[Mutant]) -> str:
    """Return the kill rate of every group and file, and the survivors."""
    lines = ["| sources | mutants | killed | rate |", "|---|---|---|---|"]
    for name in ["", *GROUPS, *sorted({one.file for one in killed + survived})]:
        dead, alive = (sum(name in ("", one.group, one.file) for one in part) for part in (killed, survived))
        if dead + alive:
            lines.append(f"| {name or 'all'} | {dead + alive} | {dead} | {dead / (dead + alive):.1%} |")
    return "\n".join([*lines, "", "Survivors:", "", *(f"- `{one.words}`" for one in survived), ""])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the checkout to measure")
    parser.add_argument("--number", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="part of a path, e.g. core/ledger.py: sample these files alone")
    parser.add_argument("--tests", default=TESTS, help=f"folders or files below tests (default: {TESTS})")
    given = parser.parse_args()
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # threads do not survive a fork
    root = given.root.resolve()
    places = [root / "tests" / name for name in given.tests.split()]
    files = sorted(file for place in places for file in ([place] if place.is_file() else place.rglob("test_*.py")))
    with tempfile.TemporaryDirectory() as folder:

        def workers(is_first: bool) -> ProcessPoolExecutor:
            fork = multiprocessing.get_context("fork")
            return ProcessPoolExecutor(given.jobs, fork, prepare, (root, Path(folder), is_first))

        with workers(is_first=True) as pool:
            first = pool.map(run, [Task([str(file)], LONGEST_S) for file in files])
            recorded = {test: found for _, called in first for test, found in called.items()}
        print(f"{len(recorded)} tests of {len(files)} files pass without a change", flush=True)
        drawn = draw_mutants(root / "src", given.number, given.seed, given.only)
        tasks = [choose(mutant, recorded) for mutant in drawn]
        survived = [task.mutant for task in tasks if not task.tests]
        tried, killed = [task for task in tasks if task.tests], list[Mutant]()
        with workers(is_first=False) as pool:
            for task, (passed, _) in zip(tried, pool.map(run, tried), strict=True):
                (survived if passed else killed).append(task.mutant)
                print("SURVIVED" if passed else "killed  ", task.mutant.words, flush=True)
    print(describe(killed, survived))


if __name__ == "__main__":
    main()
