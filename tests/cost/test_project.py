"""Whole projects: their money, their time, and runs that fail."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import Usage, quote
from epochcost.cost.project import PROJECTS, Project, quote_project
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Credit
from price_plans import all_plans, figures, owned, plan, rented

HOUR = Decimal(3600)
numbers = st.integers(1, 30)


def test_two_configurations_and_ten_runs() -> None:
    """AI21's project is twenty runs of 0.90 dollars."""
    found = quote_project(rented(), Usage(HOUR), PROJECTS["ai21"])
    assert found.quote.total == 18
    assert found.in_sequence_seconds == 20 * HOUR


def test_machines_at_once_save_time_and_no_money() -> None:
    """Twenty runs on four machines at once take the time of five."""
    one, four = (
        quote_project(rented(), Usage(HOUR), Project(2, 10, machines)) for machines in (1, 4)
    )
    assert one.quote.total == four.quote.total
    assert (four.at_once_seconds, four.in_sequence_seconds) == (5 * HOUR, 20 * HOUR)


def test_failed_runs_are_an_expectation_with_a_line_of_its_own() -> None:
    """Where a fifth of all starts fail, eight that count come with two that do not."""
    found = quote_project(rented(), Usage(HOUR), Project(2, 4, 1, Decimal("0.2")))
    line = found.quote.lines[-1]
    assert (line.label, line.quantity, line.amount) == ("failed runs, expected", 2, Decimal("1.8"))
    assert found.quote.total == 9
    assert found.in_sequence_seconds == 10 * HOUR


def test_every_run_is_rounded_by_itself() -> None:
    """A minute in whole hours is an hour, each time."""
    found = quote_project(rented(billing="whole-hour"), Usage(Decimal(60)), Project(3, 1))
    assert found.quote.total == Decimal("2.7")


def test_credit_pays_for_failed_runs_too() -> None:
    """Ten runs, of which two fail, at 0.90 each, less 8.50."""
    price = plan(amount=Decimal("0.90"), credit=Credit(amount=Decimal("8.5")))
    found = quote_project(price, Usage(HOUR), Project(2, 4, 1, Decimal("0.2"))).quote
    assert (found.total, found.credit_used, found.credit_left) == (
        Decimal("0.5"),
        Decimal("8.5"),
        0,
    )


@given(all_plans, numbers, numbers, numbers)
def test_a_project_without_failures_is_its_runs(
    price: Price, configurations: int, repeats: int, at_once: int
) -> None:
    """Under any plan the project costs what so many runs cost, however many are at once."""
    project = Project(configurations, repeats, at_once)
    found = quote_project(price, Usage(HOUR), project)
    runs = Usage(HOUR, runs=configurations * repeats)
    assert found.quote.total == quote(price, runs).total
    assert found.at_once_seconds <= found.in_sequence_seconds


@given(figures("0", "0.9"), numbers)
def test_the_expected_total_goes_with_one_over_success(share: Decimal, repeats: int) -> None:
    """N runs that count cost n / (1 - s) runs."""
    total = quote_project(owned(), Usage(HOUR), Project(1, repeats, 1, share)).quote.total
    one = quote(owned(), Usage(HOUR)).total
    assert abs(total - one * repeats / (1 - share)) < Decimal("1e-12")


@pytest.mark.parametrize("share", ["1", "-0.1", "NaN", "Infinity"])
def test_impossible_shares(share: str) -> None:
    """If all fail none counts."""
    with pytest.raises(
        InputError, match=r"^failed share: expected a share of at least 0 and below"
    ):
        Project(failed_share=Decimal(share))


@pytest.mark.parametrize("name", ["configurations", "repeats", "at_once"])
def test_impossible_numbers(name: str) -> None:
    """Of everything there is at least one."""
    with pytest.raises(InputError, match="expected a whole number of at least 1, got 0"):
        Project(**{name: 0})


def test_a_usage_of_several_runs_is_refused() -> None:
    """The project says how many runs there are, and nobody else."""
    with pytest.raises(InputError, match=r"^project: expected the usage of one run, got one of 2"):
        quote_project(rented(), Usage(HOUR, runs=2), Project())
