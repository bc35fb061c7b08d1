"""Every mechanism has one look, and people with colour blindness can tell them apart."""

from itertools import combinations

import numpy as np
import pytest

from wevent.core.builtin_mechanisms import BUILT_IN
from wevent.plotting.style import LOOKS, look_of

# What the eye gets of linear red, green and blue, without one kind of cone (Machado, Oliveira and Fernandes 2009).
SIGHT = {
    "common": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(colour, sight):
    """CIE L*a*b*: a distance of 2 is just visible, of 20 plain."""
    share = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(SIGHT[sight]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    cubic = np.where((scaled := xyz / [0.95047, 1, 1.08883]) > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * cubic[1] - 16, 500 * (cubic[0] - cubic[1]), 200 * (cubic[1] - cubic[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_mechanisms_differ_in_colour(sight):
    near = [
        (one, other)
        for one, other in combinations(LOOKS, 2)
        if np.linalg.norm(lab(LOOKS[one].colour, sight) - lab(LOOKS[other].colour, sight)) < 24
    ]
    assert near == []


def test_every_built_in_mechanism_has_its_own_look():
    assert set(LOOKS) == set(BUILT_IN)
    assert len({(look.marker, look.filled) for look in LOOKS.values()}) == len(LOOKS)
    shared = {name for name, look in LOOKS.items() if look.line == "--"}
    assert shared == {name for name, row in BUILT_IN.items() if row.shared_budget}


def test_registered_mechanisms_get_theirs_from_their_name():
    looks = [look_of(f"mine{number}") for number in range(50)]
    assert looks == [look_of(f"mine{number}") for number in range(50)]
    assert len(set(looks)) > 25
    assert not {look.colour for look in looks} & {look.colour for look in LOOKS.values()}


def test_a_variant_keeps_the_colour():
    assert look_of("ba:std") == look_of("ba")._replace(line=":")
