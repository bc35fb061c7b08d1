"""Jobs in this process and in several."""

import numpy as np
import pytest

from wevent.errors import InvalidOption
from wevent.experiments.datasets.synthetic import synthetic_stream
from wevent.experiments.mechanism_specs import MechanismSpec
from wevent.experiments.processes import Job, run_jobs
from wevent.experiments.requirement_sampling import Assigner
from wevent.experiments.trial import Assigned

STREAM = synthetic_stream("log", users=120, slots=25)


def run(draws, jobs, processes=1):
    def progress(label, done, total):
        pass

    return run_jobs(STREAM, draws, jobs, seed=1, processes=processes, progress=progress, total=len(jobs))


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_jobs(processes):
    """Also if the people change from job to job."""
    draws = [Assigned(Assigner("equal", ["1"], [window]), 1) for window in (3, 5)]
    specs = [MechanismSpec.parse("uniform"), MechanismSpec.parse("sample")]
    jobs = [Job(draw, repeat, spec) for repeat in (0, 1) for spec in specs for draw in (0, 1)]
    finished = run(draws, jobs, processes)
    assert [result.job for result in finished] == jobs
    for result, job in zip(finished, jobs, strict=True):
        trial = draws[job.draw].trial(STREAM, job.repeat)
        assert result.mean_count == trial.truth.mean()
        assert (result.example is None) == (job.repeat > 0)
        if job.spec.name == "sample":
            window = trial.population.classes[0].window
            assert np.flatnonzero(result.fresh).tolist() == list(range(0, 25, window))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_failing_job_ends_the_others(processes):
    with pytest.raises(InvalidOption, match="types, equal"):
        run([Assigned(Assigner("nobody"), 1)], [Job(0, 0, MechanismSpec.parse("pba"))], processes)
