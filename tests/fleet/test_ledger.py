"""The ledger of a launch: one launch at a time, and a damaged file."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.errors import CapabilityError
from epochcost.fleet.ledger import FOLDER, open_ledger


def test_one_launch_at_a_time(tmp_path: Path) -> None:
    """A second launch of a project is refused, and may run when the first is over."""
    with (
        open_ledger(tmp_path, None),
        pytest.raises(CapabilityError, match=r"wait for it, or launch from another project"),
        open_ledger(tmp_path, None),
    ):
        pass
    with open_ledger(tmp_path, None) as ledger:
        assert not ledger.entries.leases


def test_damaged_ledger_is_not_forgotten(tmp_path: Path) -> None:
    """Machines may be up that a damaged ledger named, so a launch says what to do."""
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "ledger.json").write_text('{"leases": 1}')
    with (
        pytest.raises(CapabilityError, match=r"ledger\.json: .* give them back, and remove"),
        open_ledger(tmp_path, None),
    ):
        pass
