"""What a slot stores comes back to the bit, whatever was drawn: any integer release must be storable (spec 10)."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wevent.core.mechanism import Measurement, NoiseError
from wevent.journal.record import Shown, decode_shown, encode_shown

LAW = NoiseError("laplace", 2.0, 8.0)
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


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_any_finite_float(values: list[float]) -> None:
    shown = Shown(3, np.array(values) + 0.0, np.abs(np.array(values)), Measurement(np.array(values[::-1]), LAW))
    again = decode_shown(3, encode_shown(shown))
    assert again.measured is not None
    assert again.std_error is not None
    assert again.measured.values.tolist() == values[::-1]
    assert again.values.tolist() == shown.values.tolist()
    assert again.std_error.tolist() == np.abs(np.array(values)).tolist()
