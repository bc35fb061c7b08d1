"""The picture of an audit: what is written in it lies on nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from wevent.plotting import audit_figure
from wevent.plotting.audit_figure import ShownLoss, draw_audit

PARTS = (0.0, 0.05, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0, 1.01, 1.5, 2.0, 900.0, math.inf)


@pytest.mark.parametrize("promised", [1.0, 2e-9, 12.375])
def test_no_label_lies_on_the_line_a_bar_or_another_label(
    promised: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels: list[Any] = []
    others: list[Any] = []
    edges: list[float] = []

    @contextmanager
    def measured(*arguments: Any, **more: Any) -> Iterator[tuple[Any, Any]]:
        with picture(*arguments, **more) as (drawn, axes):
            yield drawn, axes
            drawn.draw_without_rendering()
            axis = axes[0, 0]
            labels.extend(text.get_window_extent() for text in axis.texts)
            texts = (*axis.get_yticklabels(), *axis.get_xticklabels(), *drawn.texts)
            others.extend(one.get_window_extent() for one in (*axis.lines, *axis.patches, *texts))
            edges.append(drawn.bbox.x1)

    picture = audit_figure.picture
    monkeypatch.setattr(audit_figure, "picture", measured)
    rows = [
        ShownLoss(f"black box, 12 slots, ε = {promised:g}", promised, part * promised, part > 1.0) for part in PARTS
    ]
    draw_audit("pbd breaks a promise", "A promise is broken.", rows, tmp_path / "shown.png")
    assert len(labels) == len(rows)
    assert not any(label.overlaps(other) for label in labels for other in others)
    assert not any(label.overlaps(other) for label, other in combinations(labels, 2))
    assert max(label.x1 for label in labels) <= edges[0], "cut off at the edge"
