"""Rankings of machines for a job, and their three answers."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from epochcost.analysis.observations import Evidence
from epochcost.cost.estimate import Estimate, Time
from epochcost.report.ranking import Contender, Contest, LogAxis
from epochcost.specs.terms import Owned
from price_plans import rented

_PRICE = rented()


def contender(name: str, seconds: int, dollars: int, *, answers: bool = True) -> Contender:
    """A machine whose cost has an interval of ± 20 %."""
    cost = Decimal(dollars)
    estimate = Estimate(cost * 4 / 5, cost, cost * 6 / 5, "USD", "p", assumed=False)
    return Contender(
        hardware=name,
        name=name,
        price=_PRICE.model_copy(update={"assumed": not answers}),
        time=Time.exact(Decimal(seconds)),
        cost=estimate,
        mark="predicted",
        evidence=Evidence("a page", "x.md"),
    )


def test_three_machines_win_in_three_ways() -> None:
    """The answers have the least cost, the least time, and the least product of both."""
    slow, middle, quick = contender("a", 100, 1), contender("b", 10, 3), contender("c", 5, 50)
    beaten = contender("d", 20, 4)
    job = Contest("full", (slow, middle, beaten, quick))
    assert (job.cheapest, job.balanced, job.fastest) == (slow, middle, quick)
    assert job.frontier == (quick, middle, slow)


def test_the_fastest_costs_no_more_for_a_few_percent() -> None:
    """Of machines that are within 5 % of the shortest time, the cheapest is the fastest answer."""
    least, dear, fair = contender("a", 200, 1), contender("b", 100, 50), contender("c", 104, 9)
    late = contender("d", 106, 8)
    assert Contest("full", (least, dear, fair, late)).fastest is fair


def test_who_cannot_win_leads_only_alone() -> None:
    """A machine at an assumed price is the cheapest only if no other machine has a list price."""
    sold, assumed = contender("a", 10, 9), contender("b", 1, 1, answers=False)
    assert Contest("full", (sold, assumed)).cheapest is sold
    assert Contest("full", (assumed,)).cheapest is assumed


def test_the_measured_machine_is_named_unless_it_is_the_answer() -> None:
    """The cheapest measured machine with a list price is named if another machine is cheaper."""
    guess = contender("a", 10, 1)
    mine, other = (replace(contender(n, 10, d), mark="measured") for n, d in (("b", 3), ("c", 4)))
    assumed = replace(contender("d", 10, 2, answers=False), mark="measured, price assumed")
    assert Contest("full", (guess, mine, other, assumed)).measured is mine
    assert Contest("full", (mine, other)).measured is None
    assert Contest("full", (guess,)).measured is None


def test_an_owned_machine_adds_only_energy() -> None:
    """A job of two hours at 400 W, beside 100 W idle, adds 0.6 kWh; a rented machine adds none."""
    amounts = {"purchase": 1, "years": 4, "utilisation": 1, "power_watts": 400, "idle_watts": 100}
    owned = Owned(
        **{key: Decimal(value) for key, value in amounts.items()},
        electricity_per_kwh=Decimal("0.5"),
    )
    rented = contender("a", 7200, 1)
    mine = replace(rented, price=_PRICE.model_copy(update={"owned": owned}))
    assert rented.added_energy is None
    assert mine.added_energy == Decimal("0.3")
    per_vcpu = owned.model_copy(update={"per_vcpu": True})
    shared = replace(rented, price=_PRICE.model_copy(update={"owned": per_vcpu}))
    assert shared.added_energy is None


def test_an_axis_holds_its_means_and_cuts_what_reaches_beyond() -> None:
    """Mean values lie inside the axis; values beyond it are placed at its ends."""
    axis = LogAxis.over([Time.exact(Decimal(10)), Time.exact(Decimal(1000))])
    assert 0 < float(axis.percent(Decimal(10))) < 50 < float(axis.percent(Decimal(1000))) < 100
    assert (axis.percent(Decimal("1e-9")), axis.percent(Decimal("1e9"))) == ("0.0", "100.0")
