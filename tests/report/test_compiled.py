"""Charts of one kind are compiled together and drawn as each by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import vl_convert

from epochcost.report.charts import compiled
from epochcost.report.charts.still import still
from report_charts import CHARTS

Leaf = Callable[[Any], Any]
_APART = ("data", "domain", "values")


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """No chart of another test was met."""
    compiled._kind.cache_clear()
    yield
    compiled._kind.cache_clear()


def _changed(part: Any, change: Leaf, inside: bool = False) -> Any:
    """A spec whose data, domains and values on axes are changed."""
    if isinstance(part, dict):
        return {
            key: value if key == "config" else _changed(value, change, inside or key in _APART)
            for key, value in part.items()
        }
    if isinstance(part, list):
        return [_changed(value, change, inside) for value in part]
    return change(part) if inside else part


def _larger(leaf: Any) -> Any:
    return leaf * 1.37 if isinstance(leaf, float | int) and not isinstance(leaf, bool) else leaf


def _other(leaf: Any) -> Any:
    return f"{leaf}, other" if isinstance(leaf, str) else leaf


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("change", [_larger, _other])
def test_a_chart_is_drawn_as_by_itself(name: str, change: Leaf) -> None:
    """The third of a kind as the first, with other numbers or names, byte for byte."""
    spec = still(CHARTS[name].spec())
    compiled.svg(spec)
    compiled.svg(spec)
    changed = _changed(spec, change)
    assert changed != spec
    drawn = compiled.svg(changed)
    assert compiled._kind.cache_info().misses == 1
    assert drawn == vl_convert.vegalite_to_svg(changed)
    assert drawn != compiled.svg(spec)


def test_a_name_in_a_text_is_no_name() -> None:
    """A chart that says what stands for its values says it still."""
    spec: dict[str, Any] = {
        "data": {"values": [{"x": 1, "y": "a"}, {"x": 3, "y": "b"}]},
        "mark": "point",
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "scale": {"domain": [0, 4]}},
            "y": {"field": "y", "type": "nominal", "title": "ec_given_1"},
        },
    }
    for low in (0, -1, 0.5):
        spec["encoding"]["x"]["scale"]["domain"][0] = low
        drawn = compiled.svg(spec)
        assert drawn == vl_convert.vegalite_to_svg(spec)
        assert "ec_given_1" in drawn
        assert "ec_given_0" not in drawn


def test_a_domain_of_dates_is_left_to_vega_lite() -> None:
    """It makes an expression of each date, which nobody else could put in its place."""
    spec: dict[str, Any] = {
        "data": {"values": [{"x": "2026-03-01"}]},
        "mark": "point",
        "encoding": {
            "x": {
                "field": "x",
                "type": "temporal",
                "scale": {"domain": [{"year": 2026, "month": 1}, {"year": 2027, "month": 1}]},
            }
        },
    }
    drawn = [compiled.svg(spec) for _ in range(3)]
    assert set(drawn) == {vl_convert.vegalite_to_svg(spec)}
