"""What a slot stores comes back to the bit, whatever was drawn: any integer release must be storable (spec 10)."""

from __future__ import annotations

import zlib

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wevent.core.mechanism import ErrorModel, Measurement
from wevent.core.requirements import Population, Requirement
from wevent.journal.record import Group, Shown, _pack, _unpack, decode_shown, encode_shown

LAW = ErrorModel("laplace", 2.0, 8.0)
WHOLE = st.integers(-(2**63), 2**63 - 1)


@given(values=st.lists(WHOLE, min_size=1, max_size=5))
def test_whole_measurements_of_any_size(values: list[int]) -> None:
    measured = np.array(values, dtype=np.int64)
    shown = Shown(3, measured.astype(np.float64), None, Measurement(measured, LAW))
    again = decode_shown(3, encode_shown(shown))
    assert again.measured is not None
    assert again.measured.values.dtype == np.int64
    assert again.measured.values.tolist() == values
    assert again.values.tolist() == shown.values.tolist()


@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5),
    lean=st.none() | st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=4),
    anchored=st.booleans(),
)
def test_two_sums(values: list[float], lean: list[float] | None, anchored: bool) -> None:
    """What a replay needs of a second sum; without one, the bytes that there always were."""
    anchor = (np.array(values[::-1]) + 0.0, ErrorModel("laplace", 3.0, 18.0)) if anchored else None
    leaning = None if lean is None else np.array(lean) + 0.0
    measured = Measurement(np.array(values) + 0.0, LAW, 0.25, 90, anchor, leaning)
    again = decode_shown(3, encode_shown(Shown(3, np.abs(np.array(values)), None, measured))).measured
    assert again is not None
    assert again.values.tobytes() == measured.values.tobytes()
    assert (again.error, again.composition, again.users) == (LAW, 0.25, 90)
    assert (again.anchor is None, again.lean is None) == (anchor is None, leaning is None)
    if anchor is not None and again.anchor is not None:
        assert (again.anchor[0].tobytes(), again.anchor[1]) == (anchor[0].tobytes(), anchor[1])
    if leaning is not None and again.lean is not None:
        assert again.lean.tobytes() == leaning.tobytes()
    if anchor is None and leaning is None:
        plain = Shown(3, np.abs(np.array(values)), None, Measurement(measured.values, LAW, 0.25, 90))
        stored = msgspec.msgpack.decode(encode_shown(plain))[2]
        assert len(stored) == 5


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_any_finite_float(values: list[float]) -> None:
    shown = Shown(3, np.array(values) + 0.0, np.abs(np.array(values)), Measurement(np.array(values[::-1]), LAW))
    again = decode_shown(3, encode_shown(shown))
    assert again.measured is not None
    assert again.std_error is not None
    assert again.measured.values.tolist() == values[::-1]
    assert again.values.tolist() == shown.values.tolist()
    assert again.std_error.tolist() == np.abs(np.array(values)).tolist()


@pytest.mark.parametrize("cells", [1, 2, 511, 513, 10_000])
def test_values_are_packed_short_and_come_back(cells: int) -> None:
    random = np.random.default_rng(cells)
    kinds = {
        "counts": np.rint(random.laplace(5, 30, cells)),
        "estimates": random.normal(5, 3, cells),
        "mostly nothing": np.where(random.random(cells) < 0.9, 0.0, random.random(cells)),
        "busy cells first": np.sort(np.maximum(random.normal(0, 1, cells), 0))[::-1],
    }
    for kind, values in kinds.items():
        packed = _pack(values)
        assert np.array_equal(_unpack(packed), values), kind
        assert len(packed) <= 1.15 * len(zlib.compress(values.astype("<f8" if packed[:1] == b"f" else "<i8"), 6)) + 8, (
            kind
        )


def test_a_group_of_users_comes_back() -> None:
    small, large = Requirement.from_nano(3, 400), Requirement.from_nano(8, 600)
    population = Population({large: 5, small: 7}, {small: 4, large: 5})
    for unregistered in (None, (8, 600, 3, 2)):
        group = Group.of(population, 12, unregistered)
        assert msgspec.json.decode(group.data) == {
            "turnover": 12,
            "classes": [[3, 400, 7, 4], [8, 600, 5, 5]],
            "unregistered": None if unregistered is None else [8, 600, 3, 2],
        }
        again = Group.from_data(group.data)
        assert (again.turnover, again.digest) == (12, group.digest)
        assert dict(again.population.items()) == {small: 7, large: 5}
        assert again.population.own.tolist() == [4, 5]
