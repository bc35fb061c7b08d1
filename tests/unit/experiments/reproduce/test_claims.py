"""Verdicts on results whose answer is known."""

import numpy as np
import pytest

from wevent.experiments.reproduce.campaign import MECHANISMS, all_settings
from wevent.experiments.reproduce.claims import judge
from wevent.experiments.reproduce.results import Results

LEVEL = {"bd": 8.0, "ba": 4.0, "pbd": 5.0, "pba": 2.0, "plbu": 50.0, "bd:std": 5.0, "ba:std": 1.0}


def invented(level=LEVEL, *, repeats=6, streams=("tlns", "sin", "log"), spread=0.01):
    """Errors that only depend on the mechanism, but for a little noise."""
    generator = np.random.default_rng(1)
    for stream in streams:
        for mechanism in MECHANISMS:
            settings = {}
            for one in all_settings():
                values = level.get(mechanism, 3.0) * np.exp(generator.normal(0, spread, repeats))
                settings[one.key] = {
                    "amre": values.tolist(),
                    "ajsd": values.tolist(),
                    "ms_per_slot": [float(values[0])],
                }
            yield {"stream": stream, "mechanism": mechanism, "settings": settings}


def verdicts(results):
    return {(one.claim, one.baseline): one.verdict for one in judge(Results(results))}


def test_claims_hold_or_not_by_the_baseline():
    found = verdicts(invented())
    claim = "PBA has a smaller error than BA on the synthetic streams"
    assert found[claim, "1/ε"] == "holds"
    assert found[claim, "√2/ε"] == "does not hold"
    assert found["PBA is better than PBD on slow (synthetic) streams", "-"] == "holds"
    assert found["The errors of PBD and PBA drop when the ratio passes 0.8 (0.7 against 0.9)", "-"] == "does not hold"
    assert found["PLBU has the largest error, except on TLNS", "1/ε"] == "partly"


def test_absent_streams_are_not_tested():
    assert verdicts(invented())["PBD has a smaller error than BD on the real streams", "1/ε"] == "not tested"
    with_taxi = verdicts(invented(streams=("taxi",)))
    assert with_taxi["PBD has a smaller error than BD on the real streams", "1/ε"] == "holds"


def test_noise_and_single_repeats_prove_nothing():
    noisy = verdicts(invented(dict.fromkeys(LEVEL, 3.0), spread=1.0))
    assert noisy["PBA has a smaller error than BA on the synthetic streams", "1/ε"] != "holds"
    once = verdicts(invented(repeats=1))
    assert once["PBA has a smaller error than BA on the synthetic streams", "1/ε"] == "not tested"


def test_the_measured_column_has_intervals():
    measured = next(one.measured for one in judge(Results(invented())) if one.claim.startswith("PBA has a smaller"))
    assert measured.startswith("6 of 6: tlns, epsilon: -50% (-5")
    assert "ratio of means -50%" in measured


GENTLE = "That rise is gentle: at most in proportion to the window, 5 times"


def rising(times):
    """Errors that are this many times as large at the widest window as at the narrowest."""
    for result in invented():
        for key, measures in result["settings"].items():
            if key == "window=200":
                measures["amre"] = [times * value for value in measures["amre"]]
        yield result


@pytest.mark.parametrize(
    ("times", "verdict"), [(2.0, "holds"), (4.8, "holds"), (5.3, "does not hold"), (210.95, "does not hold")]
)
def test_a_rise_is_gentle_or_not_by_its_size(times, verdict):
    found = verdicts(rising(times))
    assert found["The error rises as the window grows from 40 to 200", "1/ε"] == "holds"
    assert found[GENTLE, "1/ε"] == found[GENTLE, "√2/ε"] == verdict


def test_an_error_that_does_not_rise_does_not_rise_gently():
    assert verdicts(rising(0.5))[GENTLE, "1/ε"] == "does not hold"


def test_large_changes_are_times():
    measured = next(one.measured for one in judge(Results(rising(210.95))) if one.claim == GENTLE)
    assert "tlns, bd: 21" in measured
    assert " times (" in measured
    assert "20995%" not in measured
