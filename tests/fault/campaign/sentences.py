"""Refusals by what they say, without names and numbers."""

from __future__ import annotations

import re

from tests.fault.campaign.commands import Ended


def sentence(ended: Ended) -> str:
    """The sentence of a refusal up to its remedy; numbers and paths as signs."""
    line = next((one for one in ended.err.splitlines() if one.startswith("Error: ")), "")
    text = re.sub(r"(/|\b)[\w./-]*(run\.journal|out\.\w+|copy\.journal)[\w.-]*", "FILE", line.removeprefix("Error: "))
    return re.sub(r"\d+", "N", text.split(". ")[0])[:160]
