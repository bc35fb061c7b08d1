"""Tasks of a reproduction: the same seed gives the figures that it always gave."""

from pathlib import Path

import pytest

from wevent.experiments.reproduce.campaign import Campaign
from wevent.experiments.reproduce.runner import plan_tasks, run_task

# wevent reproduce --streams sin --slots 30 --repeats 2 --users 100 --figures amre-epsilon at 1c74cb9, setting epsilon=0.6
RECORDED = {
    "ba:std": [9729.816666666668, 8923.083333333334],
    "ba": [80966.86666666667, 32863.48333333333],
    "bd:std": [15286.966666666667, 406144.36666666664],
    "bd": [20944.95, 27917.7],
    "lbu": [5347688.536729023, 12835551.453206379],
    "pba": [1767.0833333333333, 1506.4333333333334],
    "pbd": [56047.166666666664, 1282.9],
    "pbu": [10243.85, 2864.55],
    "pft": [207.85741535955748, 35.39335733770179],  # since anchors are its own
    "pft:weighted": [32.10979518648598, 48.57856718824109],
    "plbu": [2196163.5591486613, 2567381.3301505717],
    "sample": [6.366666666666666, 28.5],
    "uniform": [80639.46666666666, 74605.11666666667],
}


@pytest.mark.parametrize("mechanism", list(RECORDED))
def test_figures_of_a_seed_do_not_change(mechanism):
    campaign = Campaign(seed=1, repeats=2, users=100, slots=30, mechanisms=(mechanism,))
    (task,) = plan_tasks(campaign, ["sin"], ["epsilon"], timing=False, data=Path("data"))
    assert run_task(task)["settings"]["epsilon=0.6"]["amre"] == pytest.approx(RECORDED[mechanism], rel=1e-9)
