"""Copies of a publisher with its whole state, hidden or not, and a fingerprint of that state.

`copy.deepcopy` would take an array that is a view of another for an array of its own. Here views stay views, immutable
values are shared, and the source of noise is exchanged.
"""

from __future__ import annotations

import io
import pickle
from enum import Enum
from types import BuiltinFunctionType, CellType, FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from wevent.auditing.exact.scripted_noise import NotFollowed, ScriptedNoise
from wevent.core.mechanism import Mechanism
from wevent.core.options import Options
from wevent.core.requirements import Population, Requirement
from wevent.counting.labels import Cells

Thing = TypeVar("Thing")

_SHARED = (type, Enum, ModuleType, BuiltinFunctionType, Requirement, Population, Options, Mechanism, Cells)
_REMADE = (Requirement, Population, Options, Cells)  # by a restore: equal ones are the same
_held: dict[Any, Any] = {}  # shared values by id, while a copy is made


def fork(thing: Thing, noise: ScriptedNoise) -> Thing:
    """Return a copy that shares no state with the original and draws from this source.

    Raises:
        NotFollowed: if it holds a value that cannot be copied: a lock, a file, a permit that was kept.
    """
    try:
        data = _dump(thing, is_mark=False)
        _held[ScriptedNoise] = noise
        copied: Thing = pickle.loads(data)
    except Exception as error:
        raise NotFollowed(f"a state that cannot be copied ({type(error).__name__})") from error
    finally:
        _held.clear()
    return copied


def fingerprint(thing: Any) -> bytes | None:
    """Return bytes that are equal for two forks in the same state; None where that cannot be told."""
    try:
        return _dump(thing, is_mark=True)
    except Exception:  # noqa: BLE001  whatever it holds, its state is not known
        return None
    finally:
        _held.clear()


def _dump(thing: Any, *, is_mark: bool) -> bytes:
    stream = io.BytesIO()
    pickler = _StatePickler(stream, protocol=5)
    pickler.is_mark = pickler.fast = is_mark  # without a memo: equal values have equal marks, whoever refers to them
    pickler.dump(thing)
    return stream.getvalue()


class _StatePickler(pickle.Pickler):
    is_mark = False

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ScriptedNoise):
            return _find, (None,)
        if isinstance(value, FunctionType) and value.__module__ == __name__:
            return NotImplemented  # what makes copies: by its name
        if isinstance(value, _SHARED) or (isinstance(value, FunctionType) and not value.__closure__):
            return self._share(value)
        if isinstance(value, FunctionType):
            cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
            return _make_function, (_Template(value), cells)
        if isinstance(value, _Template):
            return self._share(value.function.__code__ if self.is_mark else value.function)
        if type(value) is np.ndarray and not value.dtype.hasobject:
            return self._array(value)
        return NotImplemented

    def _share(self, value: Any) -> Any:
        key = hash(value) if self.is_mark and isinstance(value, _REMADE) else id(value)
        _held[key] = value
        return _find, (key,)

    def _array(self, value: Any) -> Any:
        root = value
        while isinstance(root.base, np.ndarray):
            root = root.base
        if self.is_mark:
            return _make_array, (value.dtype.str, value.shape, value.tobytes())
        if root is value:
            return _make_array, (value.dtype.str, value.shape, value.tobytes("A"), value.strides, value.flags.writeable)
        place = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return _make_view, (root, value.dtype.str, value.shape, place, value.strides, value.flags.writeable)


class _Template:
    """A function whose closure is copied apart from it."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function


def _find(key: Any) -> Any:
    return _held[ScriptedNoise if key is None else key]


def _make_function(function: FunctionType, contents: tuple[Any, ...]) -> FunctionType:
    cells = tuple(map(CellType, contents))
    made = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _make_array(dtype: str, shape: Any, data: bytes, strides: Any = None, is_writeable: bool = True) -> Any:
    made: Any = np.ndarray(shape, dtype, bytearray(data) or None, 0, strides)
    made.setflags(write=is_writeable)
    return made


def _make_view(root: Any, dtype: str, shape: Any, place: int, strides: Any, is_writeable: bool) -> Any:
    made: Any = np.ndarray(shape, dtype, root, place, strides)
    made.setflags(write=is_writeable)
    return made
