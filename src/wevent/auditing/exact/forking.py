"""Copies of a publisher with its whole state, hidden or not, and whether two of them are in the same state.

`copy.deepcopy` would take an array that is a view of another for one of its own, and a copied ledger would no longer be one.
Here views stay views, whatever cannot change is shared, and the source of noise is exchanged.
"""

from __future__ import annotations

import copy
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any, TypeVar

import numpy as np

from wevent.auditing.exact.steered import SteeredNoise
from wevent.core.mechanism import Mechanism
from wevent.core.options import Options
from wevent.core.requirements import Population, Requirement
from wevent.counting.labels import Cells
from wevent.publisher.release import Release

Thing = TypeVar("Thing")

_ATOMS = frozenset(
    [
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        NoneType,
        type,
        range,
        slice,
        Decimal,
        Fraction,
        BuiltinFunctionType,
        ModuleType,
    ]
)
_UNCHANGING = (type, Enum, np.generic, np.dtype, Requirement, Population, Options, Mechanism, Cells)
_REMADE = (Requirement, Population, Options, Cells)  # by a restore: equal ones are the same
_WRITTEN_IN_PYTHON = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def fork(thing: Thing, noise: SteeredNoise) -> Thing:
    """A copy that shares no state with the original and draws from this source."""
    copied: Thing = _Forking(noise).of(thing)
    return copied


class _Forking:
    """One copying: what was copied already is not copied again."""

    def __init__(self, noise: SteeredNoise) -> None:
        self._noise = noise
        self._done: dict[Any, Any] = {SteeredNoise: noise}  # by id; and what `copy.deepcopy` takes for a source

    def of(self, value: Any) -> Any:
        kind: Any = type(value)
        if is_shared(kind):
            return value
        known = self._done.get(id(value))
        if known is not None:
            return known
        if kind is SteeredNoise:
            return self._noise
        made = self._copied(kind, value)
        self._done[id(value)] = made
        return made

    def _copied(self, kind: Any, value: Any) -> Any:
        if kind is np.ndarray:
            return self._array(value)
        if kind is dict:
            made: Any = {}
            self._done[id(value)] = made
            made.update((self.of(key), self.of(entry)) for key, entry in value.items())
            return made
        if kind is list:
            made = []
            self._done[id(value)] = made
            made.extend(map(self.of, value))
            return made
        if kind in (set, frozenset):
            return kind(map(self.of, value))
        if issubclass(kind, tuple):
            parts = tuple(map(self.of, value))
            same = all(new is old for new, old in zip(parts, value, strict=True))
            return value if same else tuple.__new__(kind, parts)
        if kind is MethodType:
            return MethodType(self.of(value.__func__), self.of(value.__self__))
        if kind is FunctionType:
            return self._function(value)
        if _is_plain(kind):
            return self._instance(kind, value)
        return copy.deepcopy(value, self._done)

    def _array(self, value: Any) -> Any:
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        if root.dtype.hasobject:
            return copy.deepcopy(value, self._done)
        if root is value:
            frozen = not value.flags.writeable and (value.base is None or isinstance(value.base, bytes))
            if frozen:
                return value
            made = value.copy(order="K")
        else:  # a view: of the copied array, at the same place
            whole = self.of(root)
            if whole is root:
                return value
            place = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
            made = np.ndarray(value.shape, value.dtype, whole, place, value.strides)
        made.setflags(write=value.flags.writeable)
        return made

    def _function(self, value: FunctionType) -> FunctionType:
        if not value.__closure__:
            return value
        self._done[id(value)] = value  # one that refers to itself
        held = [cell.cell_contents for cell in value.__closure__]
        copied = list(map(self.of, held))
        if all(new is old for new, old in zip(copied, held, strict=True)):
            return value
        cells = tuple(map(CellType, copied))
        made = FunctionType(value.__code__, value.__globals__, value.__name__, value.__defaults__, cells)
        made.__kwdefaults__ = value.__kwdefaults__
        return made

    def _instance(self, kind: Any, value: Any) -> Any:
        made = kind.__new__(kind)
        self._done[id(value)] = made
        for name, held in attributes(value):
            object.__setattr__(made, name, self.of(held))
        return made


@cache
def is_shared(kind: Any) -> bool:
    """Whether instances never change."""
    return kind in _ATOMS or issubclass(kind, (*_UNCHANGING, Release))


@cache
def _is_plain(kind: Any) -> bool:
    """Whether all there is of an instance is in its attributes: a class written in Python that is copied as all are."""
    usual = kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
    return usual and kind.__flags__ & _WRITTEN_IN_PYTHON != 0 and kind.__new__ is object.__new__


@cache
def _slots(kind: Any) -> tuple[str, ...]:
    """The names of all slots, mangled where they are private."""
    names: list[str] = []
    for part in kind.__mro__:
        slots = part.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            private = name.startswith("__") and not name.endswith("__")
            names.append(f"_{part.__name__.lstrip('_')}{name}" if private else name)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def attributes(value: Any) -> list[tuple[str, Any]]:
    """Every attribute of an instance, in slots or not."""
    kind: Any = type(value)
    found = list(value.__dict__.items()) if hasattr(value, "__dict__") else []
    return found + [(name, getattr(value, name)) for name in _slots(kind) if hasattr(value, name)]


def fingerprint(thing: Any) -> bytes | None:
    """What is equal for two forks in the same state; None where that cannot be told."""
    parts: list[bytes] = []
    return b"".join(b"%d:%b" % (len(part), part) for part in parts) if _walk(thing, parts, {}) else None


def _walk(value: Any, parts: list[bytes], seen: dict[int, int]) -> bool:
    kind: Any = type(value)
    if kind in _ATOMS or isinstance(value, np.generic):
        parts.append(repr(value).encode())
        return True
    if kind is SteeredNoise:
        return True
    if is_shared(kind) and kind is not Release:
        parts.append(b"shared %d" % (hash(value) if isinstance(value, _REMADE) else id(value)))
        return True
    if id(value) in seen:
        parts.append(b"again %d" % seen[id(value)])
        return True
    seen[id(value)] = len(seen)
    parts.append(kind.__name__.encode())
    if kind is np.ndarray:
        parts += [f"{value.dtype.str} {value.shape}".encode(), value.tobytes()]
        return not value.dtype.hasobject
    return _walk_parts(kind, value, parts, seen)


def _walk_parts(kind: Any, value: Any, parts: list[bytes], seen: dict[int, int]) -> bool:
    if isinstance(value, (dict, list, tuple, set, frozenset)):
        parts.append(b"%d" % len(value))  # where it ends: [[1], 2] is not [[1, 2]]
    if kind is dict:
        return all(_walk(key, parts, seen) and _walk(held, parts, seen) for key, held in value.items())
    if kind is list or issubclass(kind, tuple):
        return all(_walk(held, parts, seen) for held in value)
    if kind in (set, frozenset):
        marks = [fingerprint(held) for held in value]
        parts.extend(sorted(mark for mark in marks if mark is not None))
        return None not in marks
    if kind is MethodType:
        return _walk(value.__func__, parts, seen) and _walk(value.__self__, parts, seen)
    if kind is FunctionType:
        parts.append(str(id(value.__code__)).encode())
        return all(_walk(cell.cell_contents, parts, seen) for cell in value.__closure__ or ())
    if _is_plain(kind):
        return all(_walk(name, parts, seen) and _walk(held, parts, seen) for name, held in attributes(value))
    return False  # whatever it is, its state is not known
