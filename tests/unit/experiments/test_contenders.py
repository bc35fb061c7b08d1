"""What can be compared: mechanisms, and peers."""

import pytest

from wevent import mechanisms
from wevent.errors import InvalidOption, UnknownMechanism
from wevent.experiments.choices import Choice, choose
from wevent.experiments.contenders import PeerChoice, choose_contenders
from wevent.experiments.peers import PEERS
from wevent.publisher.catalogue import SIMULATED_ONLY


def test_mechanisms_and_peers_are_taken_in_order():
    taken = choose_contenders(["spas", "pba", " rescuedp:steady ", "spas"]).taken
    assert taken == (
        PeerChoice("spas", PEERS["spas"]),
        Choice("pba", "pba", {}),
        PeerChoice("rescuedp:steady", PEERS["rescuedp:steady"]),
    )
    assert choose_contenders("fast").taken == (PeerChoice("fast", PEERS["fast"]),)


def test_all_take_part_by_default_but_variants():
    contenders = choose_contenders(None)
    assert [choice.label for choice in contenders.taken] == [*mechanisms(), *SIMULATED_ONLY]
    assert not contenders.left_out


def test_peers_take_no_options_and_are_left_out_unless_they_were_named():
    contenders = choose_contenders(None, {"refund": True})
    assert not {choice.label for choice in contenders.taken} & set(SIMULATED_ONLY)
    assert {contenders.left_out[name] for name in SIMULATED_ONLY} == {
        "Expected no options for a peer; received refund=True. Leave the option out, or the peer."
    }
    with pytest.raises(InvalidOption, match="no options for a peer"):
        choose_contenders(["pba", "fast"], {"refund": True})
    usual = {"neighbours": "add_remove", "refund": False}  # as a configuration may spell out
    assert len(choose_contenders(["pba", "fast"], usual).taken) == 2
    with pytest.raises(InvalidOption, match="Unknown option"):
        choose_contenders(["fast"], {"refnud": True})


def test_a_variant_that_is_none_is_refused():
    with pytest.raises(InvalidOption, match="rescuedp:steady"):
        choose_contenders(["rescuedp:stedy"])


@pytest.mark.parametrize(("written", "nearest"), [("spsa", "spas"), ("resquedp", "rescuedp"), ("pdb", "pbd")])
def test_the_nearest_name_may_be_a_peer(written, nearest):
    with pytest.raises(UnknownMechanism, match="Did you mean") as caught:
        choose_contenders([written])
    assert caught.value.suggestion == nearest


@pytest.mark.parametrize("label", PEERS)
def test_elsewhere_a_peer_is_told_to_be_one(label):
    with pytest.raises(UnknownMechanism, match="cannot publish"):
        choose([label])
