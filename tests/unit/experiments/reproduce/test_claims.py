"""Verdicts on results whose answer is known."""

import numpy as np

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
