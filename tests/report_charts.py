"""A small chart of each kind, with names that would do harm if they were read as markup."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from epochcost.report.charts.contest import CostRatio, CostRatios, CostTime, Point
from epochcost.report.charts.data import ChartData
from epochcost.report.charts.figure import Figure
from epochcost.report.charts.load import CostByLoad, LoadCost
from epochcost.report.charts.rent_or_buy import MonthPoint, RentOrBuy
from epochcost.report.charts.withheld import WithheldChart, WithheldTime

HOSTILE = '</template><script>alert(1)</script> & "x"'
_NONE, _ONE = Decimal(0), Decimal(1)
_TEXTS: dict[str, Any] = {"id": "x", "title": "Title", "description": "Description"}
CHARTS: dict[str, Figure] = {
    "cost_time": CostTime(
        **_TEXTS,
        data=ChartData(
            (
                Point(
                    *(HOSTILE, "plan", "measured", "x", 32, (9, 10, 11), (0.9, 1, 1.1)),
                    on_frontier=True,
                    label=HOSTILE,
                    side="right",
                ),
                Point(
                    *("b", "plan", "published", "x", None, (20, 20, 20), (3, 3, 3)),
                    on_frontier=False,
                    label="b",
                    side="left",
                ),
            )
        ),
    ),
    "rent_or_buy": RentOrBuy(
        **_TEXTS,
        data=ChartData(
            (
                MonthPoint(HOSTILE, "bought", "use", _NONE, Decimal(100)),
                MonthPoint(HOSTILE, "bought", "use", Decimal(700), Decimal(110)),
                MonthPoint("b", "rented", "use", _NONE, _NONE),
                MonthPoint("b", "rented", "use", Decimal(700), Decimal(500)),
                MonthPoint("b", "rented", "break-even", Decimal(150), Decimal(102)),
            )
        ),
    ),
    "load": CostByLoad(
        **_TEXTS,
        data=ChartData(
            (
                LoadCost(HOSTILE, 0.1, 5.0, is_api=False),
                LoadCost(HOSTILE, 1.0, 0.5, is_api=False),
                LoadCost("b", 0.1, 0.3, is_api=True),
                LoadCost("b", 1.0, 0.3, is_api=True),
            )
        ),
    ),
    "cost_ratio": CostRatios(
        **_TEXTS,
        data=ChartData(
            (
                CostRatio(HOSTILE, "p", "predicted", (1, 1, 1), 77.0),
                CostRatio("b", "p", "measured", (0.8, 1.6, 3.7), 23.0),
            )
        ),
    ),
    "withheld": WithheldChart(
        **_TEXTS,
        data=ChartData(
            (
                WithheldTime(HOSTILE, 1, "m", "x", "y", 1e-3, (1e-3, 2e-3, 4e-3), (1, 2, 4), "h"),
                WithheldTime("b", 8, "m", "x", "y", 1.0, (0.1, 0.2, 0.5), (0.1, 0.2, 0.5), "m"),
            )
        ),
    ),
}
