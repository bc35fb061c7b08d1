"""Jobs in this process and in several."""

import numpy as np
import pytest

from wevent.errors import InvalidOption
from wevent.experiments.assign import Assigner
from wevent.experiments.choices import Choice
from wevent.experiments.datasets.synthetic import synthetic_stream
from wevent.experiments.processes import Job, Workers
from wevent.experiments.trial import Assigned

STREAM = synthetic_stream("log", users=120, slots=25)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_jobs(processes):
    """Also if the people change from job to job."""
    draws = [Assigned(Assigner("equal", ["1"], [window]), 1) for window in (3, 5)]
    choices = [Choice.parse("uniform"), Choice.parse("sample")]
    jobs = [Job(draw, repeat, choice, 1) for repeat in (0, 1) for choice in choices for draw in draws]
    with Workers(STREAM, processes) as workers:
        finished = list(workers.run(jobs, lambda label, done, total: None, total=len(jobs)))
    assert [result.job for result in finished] == jobs
    for result, job in zip(finished, jobs, strict=True):
        trial = job.draw.trial(STREAM, job.repeat)
        assert result.mean_count == trial.truth.mean()
        assert (result.example is None) == (job.repeat > 0)
        if job.choice.name == "sample":
            window = trial.population.classes[0].window
            assert np.flatnonzero(result.fresh).tolist() == list(range(0, 25, window))


def test_a_failing_job_ends_the_others():
    job = Job(Assigned(Assigner("nobody"), 1), 0, Choice.parse("pba"), 1)
    with pytest.raises(InvalidOption, match="types, equal"), Workers(STREAM) as workers:
        list(workers.run([job], lambda label, done, total: None, total=1))
