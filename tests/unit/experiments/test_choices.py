"""Mechanisms as experiments name them."""

import pytest

from wevent.errors import InvalidOption, UnknownMechanism
from wevent.experiments.choices import OPTIONS, Choice, choose


def test_words_after_a_colon_are_options():
    assert Choice.parse("pbd") == Choice("pbd", "pbd", {})
    assert Choice.parse(" ba:std ") == Choice("ba:std", "ba", {"threshold": "std"})
    assert Choice.parse("pbd:refund:weighting").options == {"refund": True, "estimator": "weighting"}
    assert Choice.parse("pft:budget").options == {"class_weights": "budget"}
    assert Choice.parse("pbd:no-refund", {"refund": True}).options == {"refund": False}
    assert Choice.parse("bd:std", {"threshold": "scale", "round": True}).options == {"threshold": "std", "round": True}


@pytest.mark.parametrize("label", ["pbd:std", "ba:sdt", "lbu:refund", "pft:hold", "pbd:equal", "pft:unweighted"])
def test_words_that_do_not_fit_are_refused(label):
    with pytest.raises(InvalidOption):
        Choice.parse(label)


def test_each_once_in_order():
    assert [choice.label for choice in choose(["pba", "", "bd:std", "pba"]).taken] == ["pba", "bd:std"]
    with pytest.raises(UnknownMechanism, match="Did you mean"):
        choose(["pdb"])


def test_every_option_of_the_publisher_is_known():
    assert {"neighbours", "max_cells_per_user", "refund", "threshold", "estimator", "round"} <= set(OPTIONS)
    assert "noise" not in OPTIONS


def test_an_option_that_nobody_takes_is_refused():
    with pytest.raises(InvalidOption, match="known_total"):
        choose(None, {"known_total": 5})  # add_remove: nobody may declare it
