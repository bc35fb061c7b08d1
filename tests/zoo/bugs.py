"""Every bug of the zoo, family by family."""

from __future__ import annotations

from tests.zoo.bug import Bug
from tests.zoo.intake import INTAKE
from tests.zoo.living import LIVING
from tests.zoo.measuring import MEASURING
from tests.zoo.spending import SPENDING

BUGS: tuple[Bug, ...] = (*SPENDING, *MEASURING, *LIVING, *INTAKE)
