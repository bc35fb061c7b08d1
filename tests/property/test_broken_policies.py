"""Broken policies are stopped by the gate *and* seen by the independent checker ("Must show" 2).

Both proofs can fail: the correct policies run through the same streams, where the gate must stay open and the checker
silent. A gate that refuses everything, or a checker that sees violations everywhere, would not pass.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wevent
from tests.support.adversary import Run, drive, forced_publisher
from tests.support.broken_policies import (
    TRAPS,
    FreeProbe,
    NoProbe,
    ProbeForgettingLedger,
    SilentProbe,
    SmallestBoundUnclipped,
    Trap,
    UngatedLedger,
    WatchedLedger,
    mechanism,
)
from tests.support.window_checker import violated_windows
from wevent.core.permit import PermitMisused

every_trap = pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS.keys())


def publisher_of(trap: Trap, policy, ledger) -> wevent.Publisher:
    wevent.register(mechanism("under-test", policy))
    publisher = forced_publisher(trap.population, "under-test", refund=trap.refund)
    publisher._ledger = ledger(trap.population)
    return publisher


def run_of(trap: Trap, policy, ledger) -> tuple[wevent.Publisher, Run]:
    publisher = publisher_of(trap, policy, ledger)
    return publisher, drive(publisher, trap.decisions)


@every_trap
def test_the_gate_stops_it_and_the_windows_hold(trap):
    publisher, run = run_of(trap, trap.broken, WatchedLedger)
    assert publisher._ledger.refusals, "the gate let everything pass"
    for slot, refusal in publisher._ledger.refusals:
        assert isinstance(refusal, wevent.InsufficientBudget)
        assert refusal.requested > refusal.remaining
        assert run.outcomes[slot - 1] == "repeated"
        assert set(run.charges[slot - 1].values()) == {(0, 0)}  # refused: nothing read, nothing charged
        assert run.releases[slot - 1].dissimilarity is None
    assert violated_windows(run.charges) == []


@every_trap
def test_without_a_gate_the_checker_sees_it(trap):
    _, run = run_of(trap, trap.broken, UngatedLedger)
    violations = violated_windows(run.charges)
    assert violations
    assert all(one.spend > one.limit for one in violations)


@every_trap
def test_the_gate_refuses_no_later_than_the_checker_sees(trap):
    """Up to the first refusal both runs are the same, so the first refused slot ends the first violated window.

    Only then: a reservation is for the most a slot may charge, so with a refund the gate may refuse a little earlier.
    """
    gated, _ = run_of(trap, trap.broken, WatchedLedger)
    _, open_run = run_of(trap, trap.broken, UngatedLedger)
    refused = gated._ledger.refusals[0][0]
    seen = min(one.last_slot for one in violated_windows(open_run.charges))
    assert refused <= seen if trap.refund else refused == seen


@every_trap
def test_the_correct_policy_is_neither_stopped_nor_seen(trap):
    publisher, run = run_of(trap, trap.correct, WatchedLedger)
    assert publisher._ledger.refusals == []
    assert violated_windows(run.charges) == []
    _, open_run = run_of(trap, trap.correct, UngatedLedger)
    assert violated_windows(open_run.charges) == []
    assert open_run.charges == run.charges  # a gate that refuses nothing changes nothing


@every_trap
@given(script=st.text("ps", min_size=40, max_size=40))
def test_the_gate_holds_the_windows_under_any_script(trap, script):
    for policy in (trap.broken, trap.correct):
        publisher = publisher_of(trap, policy, WatchedLedger)
        run = drive(publisher, [letter == "p" for letter in script])
        assert violated_windows(run.charges) == []
        if policy is trap.correct:
            assert publisher._ledger.refusals == []


def test_a_probe_that_was_not_reserved_cannot_be_measured():
    """Leaving the probe out altogether: without a permit there is nothing to measure with, so nothing is looked at.

    Here the gate does not refuse; there is no charge to refuse, because there is no look. The slot publishes unseen.
    """
    trap = TRAPS["dissimilarity charge skipped"]
    publisher, run = run_of(trap, NoProbe, WatchedLedger)
    assert publisher._noise.probes == 0
    assert all(release.dissimilarity is None for release in run.releases)
    assert violated_windows(run.charges) == []


def test_a_probe_of_nothing_cannot_be_measured():
    """Reserving a probe of 0: the permit's noise scale would be infinite, so it yields no measurement.

    Not a refusal by budget either. What counts is that no dissimilarity is drawn and nothing overspent, whether the
    slot is repeated or the policy's author gets an error and the slot stays open.
    """
    trap = TRAPS["dissimilarity charge skipped"]
    publisher = publisher_of(trap, SilentProbe, WatchedLedger)
    before = publisher.ledger.remaining().tolist()
    try:
        run = drive(publisher, trap.decisions)
    except (ValueError, PermitMisused):
        assert publisher.slot == 1
        assert publisher.ledger.remaining().tolist() == before
    else:
        assert violated_windows(run.charges) == []
    assert publisher._noise.probes == 0


def test_a_gate_that_forgets_probes_is_seen():
    """The gate cannot stop a fault of its own: with probes missing in its books it lets too much of `FreeProbe` pass.

    The releases state what was reserved and used, not what the books say, so the independent checker still sees it.
    """
    trap = TRAPS["dissimilarity charge skipped"]
    _, run = run_of(trap, FreeProbe, ProbeForgettingLedger)
    assert violated_windows(run.charges)
    _, honest = run_of(trap, trap.correct, ProbeForgettingLedger)
    assert violated_windows(honest.charges) == []


def test_a_negative_budget_is_misuse():
    """Without the paper's max(…, 0), the smallest bound asks for less than nothing; the gate takes no deposits."""
    trap = TRAPS["nullified by the smallest bound"]
    publisher = publisher_of(trap, SmallestBoundUnclipped, WatchedLedger)
    with pytest.raises(PermitMisused, match="non-negative"):
        drive(publisher, trap.decisions)
    assert publisher.slot == 6  # the slot of the mistake is still open, nothing of it was charged
