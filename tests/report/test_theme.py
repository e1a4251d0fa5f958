"""Colours of series can be told apart with all kinds of colour vision."""

from __future__ import annotations

from itertools import combinations

import pytest

from colour_vision import NORMAL, VISIONS, Triple, difference, seen
from epochcost.report.charts import theme

# Marks are small, so the limits are well above the threshold of 1, higher for normal vision.
_LEAST = {"normal": 20, "protan": 15, "deutan": 15, "tritan": 15}
_LEAST_FROM_PAPER = 25
_PALETTES = {
    "light": (theme.LIGHT_SERIES, theme.LIGHT["--ec-paper"]),
    "dark": (theme.DARK_SERIES, theme.DARK["--ec-paper"]),
}


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("name", _PALETTES)
def test_series_differ_for_every_vision(name: str, vision: str) -> None:
    """Any two colours differ enough, and so does each colour from the background."""
    series, paper = _PALETTES[name]
    for first, second in combinations(series, 2):
        distance = difference(seen(first, VISIONS[vision]), seen(second, VISIONS[vision]))
        assert distance >= _LEAST[vision], (first, second)
    for first in series:
        assert difference(seen(first, VISIONS[vision]), seen(paper, VISIONS[vision])) >= (
            _LEAST_FROM_PAPER
        ), first


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.49, -0.001), (50, -2.49, 0.0009), 7.1792),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_that_of_the_published_pairs(
    first: Triple, second: Triple, distance: float
) -> None:
    """The colour metric reproduces published values of Sharma, Wu and Dalal."""
    assert difference(first, second) == pytest.approx(distance, abs=1e-4)


def test_the_simulation_confuses_what_people_confuse() -> None:
    """Without red or green cones, an orange and a green of equal lightness look similar."""
    orange, green = "#c04f00", "#5f7f00"
    usual = difference(seen(orange, NORMAL), seen(green, NORMAL))
    for vision in ("protan", "deutan"):
        assert difference(seen(orange, VISIONS[vision]), seen(green, VISIONS[vision])) < usual / 3
    grey = seen("#808080", VISIONS["deutan"])
    assert difference(grey, seen("#808080", NORMAL)) < 0.5
