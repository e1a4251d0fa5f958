"""A chart of each kind, small, with names that would do harm if they were markup."""

from __future__ import annotations

from epochcost.report.charts.batch_size import BatchPoint, BatchSize
from epochcost.report.charts.cost_time import CostTime, Point
from epochcost.report.charts.dots import Dot, Dots
from epochcost.report.charts.figure import Chart
from epochcost.report.charts.rent_or_buy import Crossing, MonthLine, RentOrBuy
from epochcost.report.charts.scaling import ScalingChart, ScalingPoint

HOSTILE = '</template><script>alert(1)</script> & "x"'
COLOURS = ((HOSTILE, 0), ("b", 1))
CHARTS: dict[str, Chart] = {
    "cost_time": CostTime(
        job="full training",
        currency_symbol="$",
        points=(
            Point(HOSTILE, "plan", "measured", "x", 32, (9, 10, 11), (0.9, 1, 1.1), True),
            Point("b", "plan", "published", "x", 32, (20, 20, 20), (3, 3, 3), False),
        ),
        colours=COLOURS,
    ),
    "batch_size": BatchSize(
        title="time per example",
        by="machine",
        quantity="seconds",
        currency_symbol="",
        points=(
            BatchPoint(HOSTILE, "training", 32, (1e-3, 2e-3, 3e-3)),
            BatchPoint(HOSTILE, "inference", 64, (1e-4, 2e-4, 3e-4)),
        ),
        colours=COLOURS,
    ),
    "dots": Dots(
        title="price of one hour",
        currency_symbol="$",
        dots=(Dot(HOSTILE, HOSTILE, "published", (1, 1, 1)), Dot("b", "b", "measured", (2, 3, 4))),
        colours=COLOURS,
    ),
    "rent_or_buy": RentOrBuy(
        currency_symbol="$",
        most_hours=730.5,
        lines=(MonthLine(HOSTILE, "bought", 100, 110), MonthLine("b", "rented", 0, 500)),
        crossings=(Crossing("b", 150, 102),),
    ),
    "scaling": ScalingChart(
        points=(
            ScalingPoint(HOSTILE, 1, (1, 1, 1)),
            ScalingPoint(HOSTILE, 4, (2.5, 2.6, 2.8)),
            ScalingPoint("b", 1, (1, 1, 1)),
        ),
    ),
}
