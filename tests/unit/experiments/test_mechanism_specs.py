"""Mechanisms and baselines as experiments name them."""

import pytest

from wevent import mechanisms
from wevent.errors import InvalidOption, InvalidSettings, UnknownMechanism
from wevent.experiments import compare
from wevent.experiments.baselines import BASELINES
from wevent.experiments.datasets.city import City
from wevent.experiments.datasets.synthetic import Daily
from wevent.experiments.mechanism_specs import BaselineSpec, MechanismSpec, options_in_slots, select
from wevent.publisher.catalogue import SIMULATED_ONLY


def test_words_after_a_colon_are_options():
    assert MechanismSpec.parse("pbd") == MechanismSpec("pbd", "pbd", {})
    assert MechanismSpec.parse(" ba:std ") == MechanismSpec("ba:std", "ba", {"threshold": "std"})
    assert MechanismSpec.parse("pbd:refund:weighting").options == {"refund": True, "estimator": "weighting"}
    assert MechanismSpec.parse("pft:budget").options == {"class_weights": "budget"}
    assert MechanismSpec.parse("pbd:no-refund", {"refund": True}).options == {"refund": False}
    both = MechanismSpec.parse("bd:std", {"threshold": "scale", "round": True})
    assert both.options == {"threshold": "std", "round": True}


@pytest.mark.parametrize("label", ["pbd:std", "ba:sdt", "lbu:refund", "pft:hold", "pbd:equal", "pft:unweighted"])
def test_words_that_do_not_fit_are_refused(label):
    with pytest.raises(InvalidOption):
        MechanismSpec.parse(label)


def test_mechanisms_and_baselines_are_taken_once_in_order():
    taken = select(["spas", "pba", " rescuedp:steady ", "", "spas"], baselines=True).taken
    assert taken == (
        BaselineSpec("spas", BASELINES["spas"]),
        MechanismSpec("pba", "pba", {}),
        BaselineSpec("rescuedp:steady", BASELINES["rescuedp:steady"]),
    )
    assert select("fast", baselines=True).taken == (BaselineSpec("fast", BASELINES["fast"]),)
    assert [spec.label for spec in select(None, baselines=True).taken] == [*mechanisms(), *SIMULATED_ONLY]
    assert [spec.label for spec in select(None).taken] == [*mechanisms()]


def test_baselines_take_no_options_and_are_left_out_unless_they_were_named():
    selection = select(None, {"refund": True}, baselines=True)
    assert not {spec.label for spec in selection.taken} & set(SIMULATED_ONLY)
    assert {selection.left_out[name] for name in SIMULATED_ONLY} == {
        "A baseline takes no options, so not refund=True. Leave the option out, or the baseline."
    }
    with pytest.raises(InvalidOption, match="takes no options"):
        select(["pba", "fast"], {"refund": True}, baselines=True)
    usual = {"neighbours": "add_remove", "refund": False}  # as a configuration may spell out
    assert len(select(["pba", "fast"], usual, baselines=True).taken) == 2
    with pytest.raises(InvalidOption, match="Unknown option"):
        select(["fast"], {"refnud": True}, baselines=True)
    with pytest.raises(InvalidOption, match="rescuedp:steady"):
        select(["rescuedp:stedy"], baselines=True)
    with pytest.raises(InvalidOption, match="known_total"):
        select(None, {"known_total": 5})  # add_remove: no mechanism may take it


@pytest.mark.parametrize(("written", "nearest"), [("spsa", "spas"), ("resquedp", "rescuedp"), ("pdb", "pbd")])
def test_the_nearest_name_may_be_a_baseline(written, nearest):
    with pytest.raises(UnknownMechanism, match="Did you mean") as caught:
        select([written], baselines=True)
    assert caught.value.suggestion == nearest


@pytest.mark.parametrize("label", BASELINES)
def test_elsewhere_a_baseline_cannot_publish(label):
    with pytest.raises(UnknownMechanism, match="cannot publish"):
        select([label])


def test_lengths_of_time_are_slots_of_the_stream():
    city = City(100, 20)
    assert options_in_slots({"seasonality": "1d"}, city) == {"seasonality": (288.0,)}
    assert options_in_slots({"seasonality": 100, "round": True}, city) == {"seasonality": (100.0,), "round": True}
    assert options_in_slots({"round": True}, city) == {"round": True}
    assert options_in_slots(None, city) is None
    with pytest.raises(InvalidSettings, match="number of slots"):
        options_in_slots({"seasonality": "1d"}, Daily(10, 10, 2, 24.0))
    found = compare(City(200, 30), options={"seasonality": "1d"}, repeats=1, timed_slots=0)
    assert [row.mechanism for row in found.ranked] == ["pft"]
    assert "does not apply to pba" in found.left_out["pba"]
