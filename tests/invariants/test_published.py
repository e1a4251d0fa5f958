"""The published tables: every figure is reproduced, or its spec gives a reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from epochcost.cost.claims import ClaimCheck, method, recompute
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
# Outcomes of each source's figures. A change here changes the site's claims.
OUTCOMES = {
    ("ai21-2020", "printed", "equal"): 4,
    ("ai21-2020", "printed", "not recomputed"): 1,
    ("kroutikov-2016", "derived", "equal"): 12,
    ("kroutikov-2016", "printed", "differs"): 1,
    ("kroutikov-2016", "printed", "equal"): 7,
    ("malta-2019", "derived", "equal"): 12,
    ("malta-2019", "printed", "equal"): 4,
    ("malta-2019", "printed", "within rounding"): 8,
    ("strubell-2019", "printed", "differs"): 2,
    ("strubell-2019", "printed", "equal"): 26,
    ("strubell-2019", "printed", "within rounding"): 4,
    ("woolf-2017", "drawn", "equal"): 126,
    ("woolf-2017", "printed", "equal"): 6,
}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's catalogue."""
    return load_catalogue(ROOT)


@pytest.fixture(scope="module")
def checks(catalogue: Catalogue) -> list[tuple[str, ClaimCheck]]:
    """Every published figure checked, with its source's page."""
    return [
        (published.page, check)
        for published in catalogue.published.values()
        for row in recompute(published, catalogue.prices)
        for check in row.checks
    ]


def test_how_the_figures_come_out(checks: list[tuple[str, ClaimCheck]]) -> None:
    """Of 213 figures 197 are equal; 189 are printed or drawn, of which 173 are equal."""
    counts = Counter((page, check.claim.shown, check.agreement) for page, check in checks)
    assert counts == OUTCOMES
    assert sum(counts.values()) == 213
    assert sum(number for key, number in counts.items() if key[2] == "equal") == 197
    printed = {key: number for key, number in counts.items() if key[1] != "derived"}
    assert sum(printed.values()) == 189
    assert sum(number for key, number in printed.items() if key[2] == "equal") == 173


def test_every_difference_has_a_reason_and_nothing_else(
    checks: list[tuple[str, ClaimCheck]],
) -> None:
    """A figure equals at its printed precision, or its spec gives a reason."""
    assert [check.claim for _, check in checks if check.equal == bool(check.claim.differs)] == []


def test_rounding_is_given_as_the_reason_where_it_is_one(
    checks: list[tuple[str, ClaimCheck]],
) -> None:
    """A reason names rounding if and only if rounding suffices."""
    for page, check in checks:
        reason = check.claim.differs or ""
        assert ("rounded" in reason) is (check.agreement == "within rounding"), (page, reason)


def test_every_source_says_how_its_figures_are_computed(catalogue: Catalogue) -> None:
    """The function of each source has a docstring, shown on its page."""
    assert all(method(table) for table in catalogue.published.values())
    assert "82 epochs" in method(catalogue.published["malta-2019"])


def test_published_epochs_fit_the_model(catalogue: Catalogue) -> None:
    """Epochs of a published table equal those of our model's spec."""
    linked = [published for published in catalogue.published.values() if published.model]
    assert len(linked) >= 8
    for published in linked:
        training = catalogue.model(published.model or "").training
        assert training is not None
        for timing in published.timings:
            assert timing.epochs == training.epochs, timing.id
            assert timing.batch_size is not None
            steps = training.examples_per_epoch / timing.batch_size
            assert timing.steps_per_epoch in (int(steps), int(steps) + 1), timing.id
