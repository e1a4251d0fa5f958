"""The chart of cost by load: winning machines, distinct APIs, and the legend."""

from __future__ import annotations

import math
from decimal import Decimal
from types import SimpleNamespace
from typing import cast

import pytest
import vl_convert

from epochcost.analysis.token_answers import BreakEven
from epochcost.report.charts.data import ChartData
from epochcost.report.charts.load import RATES, CostByLoad, Way, drawn_ways, finding, line_points


def machine(name: str, hour: float, most: float) -> Way:
    """A machine that costs ``hour`` and serves at most ``most`` requests a second."""
    costs = (hour * math.ceil(float(rate) / most) / float(rate) for rate in RATES)
    return Way(name, tuple(costs))


def api(name: str, cost: float) -> Way:
    """An API, whose price is the same at every rate."""
    return Way(name, (cost,) * len(RATES), is_api=True)


SMALL, LARGE, DEAR = machine("small", 1, 2), machine("large", 5, 40), machine("dear", 6, 30)


def drawn(*ways: Way) -> CostByLoad:
    """The chart of some machines and APIs."""
    data = ChartData(tuple(line_points(drawn_ways(ways))))
    return CostByLoad(id="x", title="", description="", data=data)


def names(figure: CostByLoad) -> list[str]:
    """The machines and APIs that a chart draws, in order."""
    return list(dict.fromkeys(figure.data.values_of("way")))


def test_only_machines_that_win_somewhere_are_drawn() -> None:
    """A machine that is dearer at every load, or nearly equal to a cheaper one, is omitted."""
    twin = machine("twin", 1.01, 2.01)
    assert set(names(drawn(DEAR, SMALL, LARGE, twin))) == {"small", "large"}


def test_apis_of_one_price_are_one_line() -> None:
    """Of four APIs, two of them equal, three are drawn, dearest first."""
    apis = [api("d", 9), api("b", 1.02), api("a", 1), api("c", 3)]
    assert names(drawn(SMALL, *apis)) == ["d", "c", "a", "small"]


def test_without_machines_only_apis_are_drawn() -> None:
    """Without a machine, APIs are drawn; without both, nothing."""
    assert names(drawn(api("a", 1))) == ["a"]
    assert drawn_ways([]) == []


@pytest.mark.parametrize(
    ("ways", "title"),
    [
        ((SMALL, api("a", 0.01)), "a costs least at every load"),
        (
            (machine("full", 8, 20), api("a", 0.5)),
            "a costs least at most loads; near 18 requests/s, full costs less",
        ),
        ((SMALL, LARGE), "small costs least up to 12 requests/s, large above"),
        (
            (SMALL, LARGE, api("a", 3)),
            "a costs least up to 0.38 requests/s, then small, large at high load",
        ),
    ],
    ids=["api", "once", "machines", "both"],
)
def test_the_title_says_what_costs_least(ways: tuple[Way, ...], title: str) -> None:
    """The title names the cheapest at low and high load, with the break-even rate."""
    assert finding(ways) == title


def test_names_are_in_one_legend() -> None:
    """One legend below the plot shows colour and shape, in the order of the lines' ends."""
    figure = drawn(SMALL, LARGE, *(api(name, 2.0**at) for at, name in enumerate("abc")))
    assert names(figure) == ["c", "b", "a", "small", "large"]
    (legend,) = vl_convert.vegalite_to_vega(figure.spec())["legends"]
    assert legend["title"] == "machine or API"
    assert (legend["stroke"], legend["shape"]) == ("color", "shape")


def turning(ways: tuple[Way, ...], per_second: str) -> str:
    """The title of a chart whose machine "small" costs about as much as the API at a rate."""
    offer = SimpleNamespace(deployment=SimpleNamespace(machine=SimpleNamespace(name="small")))
    turn = SimpleNamespace(
        per_second=Decimal(per_second),
        offer=offer,
        saves=False,
        comparison="costs about as much as",
    )
    return finding(ways, cast("BreakEven", turn))


def test_a_break_even_between_two_rates_is_told() -> None:
    """An API that costs least at each charted rate does not cost least at every load."""
    title = "a costs least up to 2 requests/s; above, small costs about as much"
    assert turning((SMALL, api("a", 0.01)), "1.99") == title


def test_the_cheapest_machine_at_high_load_is_told_after_a_close_one() -> None:
    """Above the break-even of a small machine, a large one costs least."""
    title = "a costs least up to 0.38 requests/s; above, small costs about as much, large least"
    assert turning((SMALL, LARGE, api("a", 3)), "0.38") == f"{title} at high load"
