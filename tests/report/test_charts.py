"""Charts: valid specs that draw, axes with round ticks, distinguishable colours."""

from __future__ import annotations

import html
import json
import re
from itertools import pairwise
from pathlib import Path

import altair as alt
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from epochcost.report.charts import axes, theme
from epochcost.report.charts.data import readable
from epochcost.report.charts.drawing import Drawer, hundredths
from epochcost.report.charts.theme import WIDTH
from epochcost.report.page_html import insert_charts
from epochcost.report.tables import Form
from epochcost.report.wording import SHAPES
from report_charts import CHARTS, HOSTILE

_LINEAR = {"rent_or_buy"}


@pytest.fixture(scope="session", name="drawer")
def drawer_fixture(tmp_path_factory: pytest.TempPathFactory) -> Drawer:
    """A drawer whose cache lasts for the session."""
    return Drawer(tmp_path_factory.mktemp("charts"))


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_draws_all_that_it_says(name: str, drawer: Drawer) -> None:
    """A chart has the agreed width, colours as CSS variables, log scales, and no script."""
    drawing = drawer.draw(CHARTS[name])
    assert f'width="{WIDTH}"' in drawing.svg
    assert ("(log scale)" in drawing.svg) == (name not in _LINEAR)
    assert "var(--ec-series-1)" in drawing.svg
    assert "<script" not in drawing.svg
    assert not re.search(r'(?:href|src)="', drawing.svg)
    assert json.loads(drawing.spec)["description"]


@pytest.mark.parametrize("name", CHARTS)
def test_a_static_drawing_is_that_of_the_whole_spec(name: str, drawer: Drawer) -> None:
    """Leaving out tooltips and labels for screen readers does not change the drawing."""
    drawing = drawer.draw(CHARTS[name])
    whole = vl_convert.vegalite_to_svg(json.loads(drawing.spec))
    assert _without_text(drawing.svg) == _without_text(hundredths(whole))


def _without_text(svg: str) -> str:
    """The drawing without names, texts and listeners."""
    return re.sub(r' (?:aria-[a-z]+|role|class|pointer-events)="[^"]*"', "", svg)


@pytest.mark.parametrize("name", CHARTS)
def test_a_spec_is_valid_as_a_whole(name: str) -> None:
    """Each chart's spec is valid by Vega-Lite's schema, which builds do not check."""
    spec = CHARTS[name].spec()
    # The configuration's colours are variables of the style sheet, which the schema excludes.
    del spec["config"]
    alt.LayerChart.from_dict(spec, validate=True)


def test_a_kept_drawing_is_read_and_a_damaged_one_drawn_again(drawer: Drawer) -> None:
    """A damaged drawing in the cache is drawn again, with an equal result."""
    first = drawer.draw(CHARTS["cost_time"])
    for path in drawer.folder.glob("*.json"):
        path.write_text('{"spec": ', encoding="utf-8")
    assert drawer.draw(CHARTS["cost_time"]) == first


def test_injected_charts_leave_their_place_to_nothing_else(drawer: Drawer) -> None:
    """A hostile name stays text in picture and spec; a place without a figure stays."""
    place = '<div class="ec-plot" data-ec-figure="{}"></div>'
    figures = {"rent_or_buy": CHARTS["rent_or_buy"]}
    page = insert_charts(place.format("rent_or_buy") + place.format("unknown"), figures, drawer)
    assert page.count("<svg") == 1
    assert "<script" not in page
    assert page.endswith(place.format("unknown"))
    spec = json.loads(drawer.draw(figures["rent_or_buy"]).spec)
    assert HOSTILE in [point["price_plan"] for point in _data(spec)]


def test_the_table_of_a_chart_is_injected_as_text(tmp_path: Path) -> None:
    """Cells of a chart's table are escaped, numbers are aligned right, and no chart is drawn."""
    drawn = CHARTS["cost_time"]
    place = '<div class="ec-table" data-ec-table="cost_time"></div>'
    page = insert_charts(place, {"cost_time": drawn}, Drawer(tmp_path))
    assert page.count("<tr>") == 3
    assert '<td style="text-align: right;">32</td>' in page
    assert html.escape(HOSTILE) in page
    assert not list(tmp_path.iterdir())


def _data(spec: dict[str, dict[str, list[dict[str, str]]]]) -> list[dict[str, str]]:
    return (
        [row for rows in spec["datasets"].values() for row in rows]
        if "datasets" in spec
        else (spec["data"]["values"])
    )


@given(st.floats(1e-7, 1e7), st.floats(1.0, 1e6))
def test_ticks_are_round_few_and_inside(low: float, factor: float) -> None:
    """There are one to nine ticks, in ascending order, all within the axis."""
    domain = axes.log_domain([low, low * factor])
    for ticks in (axes.log_ticks(domain), axes.time_ticks(domain)):
        assert 1 <= len(ticks) <= 9
        assert all(domain[0] <= tick <= domain[1] for tick in ticks)
        assert all(before < after for before, after in pairwise(ticks))


def test_a_cost_of_zero_is_at_the_low_end() -> None:
    """A free machine is at the low end of the axis of costs, also if all are free."""
    assert axes.positions([0.0, 1.0, 10.0], [0.0], 100) == [0.0]
    assert axes.positions([0.0], [0.0], 100) == [0.0]


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours."""
    high, low = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("variables", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_colours_stand_out_from_the_paper(variables: dict[str, str]) -> None:
    """Marks have a contrast of 3:1 to the background and text of 4.5:1, in both palettes."""
    paper = variables["--ec-paper"]
    for name, colour in variables.items():
        if name.startswith("--ec-series"):
            assert contrast(colour, paper) >= 3, name
    assert contrast(variables["--ec-soft"], paper) >= 4.5
    assert contrast(variables["--ec-ink"], paper) >= 7


def test_marks_are_those_of_the_pages() -> None:
    """Each kind of evidence has its own mark, hollow if the character on pages is hollow."""
    assert theme.SHAPES.keys() == SHAPES.keys()
    hollow = {kind for kind, shape in theme.SHAPES.items() if shape.count("M") == 2}
    assert hollow == {kind for kind, character in SHAPES.items() if character in "○▷▽"}
    assert len(set(theme.SHAPES.values())) == len(SHAPES)


@pytest.mark.parametrize(
    ("form", "expression"),
    [
        ("seconds", "format(datum.x * 1.15740741e-05, ',.3~r') + ' days'"),
        ("money", "'$' + "),
        ("number", "format(datum.x, ',.3~r')"),
    ],
)
def test_tooltips_are_readable(form: Form, expression: str) -> None:
    """Times have their largest unit, amounts their currency, and no number an exponent."""
    assert expression in readable(form, "datum.x")


def test_a_picture_has_its_title_and_its_source() -> None:
    """The SVG file of a chart contains title and source as text, above and below the drawing."""
    svg = '<svg width="300" height="100" viewBox="0 0 300 100"><g/></svg>'
    picture = theme.standalone_svg(svg, title="a < b " * 20, source="Prices of 2026-11-21")
    assert picture.count("a &lt; b") == 20
    assert picture.count("font-weight") > 1
    assert "Prices of 2026-11-21" in picture
    assert 'viewBox="0 -' in picture
