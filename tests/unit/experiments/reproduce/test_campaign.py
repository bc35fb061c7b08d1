"""What the paper varied."""

from wevent.experiments.reproduce.campaign import FIGURES, all_settings
from wevent.experiments.reproduce.results import keys_on


def test_there_are_nineteen_settings_and_the_axes_share_the_default():
    settings = all_settings()
    assert len(settings) == len({one.key for one in settings}) == 19
    for axis in ("epsilon", "window", "ratio-epsilon", "ratio-window"):
        assert len(keys_on(axis)) == 5
    assert set(keys_on("epsilon")) & set(keys_on("window")) == {"epsilon=0.6"}


def test_what_users_draw_from():
    found = {one.key: one.assigner for one in all_settings()}
    assert list(found["epsilon=0.6"].epsilons) == ["0.6", "0.8", "1.0"]
    assert list(found["epsilon=0.6"].windows) == [40, 80, 120]
    assert list(found["epsilon=1.0"].epsilons) == ["1.0"]
    assert list(found["window=40"].windows) == [40]
    assert list(found["window=200"].windows) == [40, 80, 120, 160, 200]
    assert found["ratio-epsilon=0.3"].kind == "ratio:0.3"
    assert list(found["ratio-window=0.3"].windows) == [40, 120]


def test_every_figure_of_the_paper_has_a_name():
    assert [one.name for one in FIGURES] == [
        "amre-epsilon",
        "amre-window",
        "amre-ratio-epsilon",
        "amre-ratio-window",
        "ajsd-epsilon",
        "ajsd-window",
        "time-epsilon",
        "time-window",
    ]
