"""What somebody meant who mistyped it."""

import pytest

from wevent.core.nearest import did_you_mean, nearest

COMMANDS = ["compare", "publish", "status", "releases", "verify", "users", "backup", "restore", "plan", "plot"]
MECHANISMS = ["pft", "pbd", "pba", "bd", "ba", "uniform", "pbu", "sample", "lbu", "plbu"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("pubish", "publish"), ("pulbish", "publish"), ("statsu", "status"), ("BACKUP", "backup"), ("plto", "plot")],
)
def test_a_slip_of_the_finger_is_recognised(written, meant):
    assert nearest(written, COMMANDS) == meant


@pytest.mark.parametrize(
    ("written", "meant"), [("pdb", "pbd"), ("pab", "pba"), ("ptf", "pft"), ("unifrom", "uniform"), ("pbd2", "pbd")]
)
def test_swapped_letters_are_one_slip(written, meant):
    assert nearest(written, MECHANISMS) == meant


def test_what_is_far_from_everything_has_no_neighbour_unless_one_is_wanted():
    assert nearest("frobnicate", COMMANDS) is None
    assert nearest("frobnicate", COMMANDS, always=True) in COMMANDS
    assert nearest("x", []) is None
    assert did_you_mean("frobnicate", COMMANDS, "See --help.") == "See --help."
    assert did_you_mean("pla", COMMANDS, "See --help.") == "Did you mean 'plan'?"
