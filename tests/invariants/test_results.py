"""The committed results pass the check of submitted results."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from epochcost.results.submissions import check_results
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]


def test_the_committed_results_have_no_fault() -> None:
    """No trial or ceiling claims more than its machine can do."""
    faults = check_results(
        load_catalogue(ROOT), ROOT / "docs/data/results", (), dt.datetime.now(dt.UTC)
    )
    assert faults.faults == ()
    assert len(faults.submissions) > 200
