"""Prices of tokens from a checkout of models.dev: changed prices get a new date."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from epochcost.errors import InputError
from epochcost.specs.api import ApiPrice
from epochcost.specs.prices.api_table import Commit, renewed

_HEADER = (
    "provider,name,input_per_million,cached_input_per_million,output_per_million,"
    "long.above_tokens,long.input_per_million,long.output_per_million,as_of,source\n"
)
_ROW = 'They,{0},1,,2,,,,2026-07-02,"anomalyco/models.dev@old, providers/they/models/{0}.toml"\n'
_UNSIZED_TIER = "[cost]\ninput = 1\noutput = 2\n[[cost.tiers]]\ninput = 3\noutput = 4\n"
_SOURCE = Commit("c0ffee", dt.date(2026, 11, 22))


@pytest.fixture(name="table")
def table_fixture(tmp_path: Path) -> Path:
    """A table of three models, two of which the checkout has."""
    models = tmp_path / "providers/they/models"
    models.mkdir(parents=True)
    (models / "same.toml").write_text("[cost]\ninput = 0.9999999999999999\noutput = 2.0\n")
    (models / "new.toml").write_text(
        "[cost]\ninput = 1.5\noutput = 2\ncache_read = 0.15\n"
        "[[cost.tiers]]\ntier = { size = 200_000 }\ninput = 3\noutput = 4\n"
    )
    table = tmp_path / "table.csv"
    table.write_text(_HEADER + "".join(map(_ROW.format, ("same", "new", "gone"))))
    return table


def test_only_changed_prices_change(table: Path) -> None:
    """Tiers and cached input are compared. Rounding of binary fractions is no change."""
    renewal = renewed(table, table.parent, _SOURCE)
    assert (renewal.changed, renewal.gone) == (("they-new",), ("they-gone",))
    row = (
        "They,new,1.5,0.15,2,200000,3,4,2026-11-22,"
        '"anomalyco/models.dev@c0ffee, providers/they/models/new.toml"\n'
    )
    assert renewal.text == _HEADER + _ROW.format("same") + row + _ROW.format("gone")


def test_rows_from_other_sources_stay(table: Path) -> None:
    """A row from another source is neither changed nor listed as gone."""
    rows = table.read_text().replace("anomalyco/models.dev@old, ", "their/list@old, ")
    table.write_text(rows)
    renewal = renewed(table, table.parent, _SOURCE)
    assert (renewal.text, renewal.changed, renewal.gone) == (rows, (), ())


def test_a_deprecated_model_is_gone(table: Path) -> None:
    """A provider that announced the end of a model may still have its price."""
    new = table.parent / "providers/they/models/new.toml"
    new.write_text('status = "deprecated"\n' + new.read_text())
    renewal = renewed(table, table.parent, _SOURCE)
    assert (renewal.changed, renewal.gone) == ((), ("they-new", "they-gone"))
    assert renewal.text == table.read_text()


def test_a_doubted_change_is_left_out(table: Path) -> None:
    """A price in a wrong unit is left out. Without other prices the change is accepted."""
    new = table.parent / "providers/they/models/new.toml"
    new.write_text("[cost]\ninput = 0.001\noutput = 0.002\n")
    prices = {"input_per_million": 1, "output_per_million": 2, "as_of": "2026-07-02"}
    texts = dict.fromkeys(("name", "provider", "source"), "elsewhere")
    other = ApiPrice.model_validate({"id": "other", **texts, **prices}, strict=False)
    renewal = renewed(table, table.parent, _SOURCE, [other])
    assert renewal.changed == ()
    assert renewal.text == table.read_text()
    assert renewal.doubted["they-new"].startswith("input plus output is 0.003, 0.001 times its")
    assert renewed(table, table.parent, _SOURCE).changed == ("they-new",)


def test_an_invalid_price_is_never_written(table: Path) -> None:
    """A new price that a check would refuse is left out, even if all changes are accepted."""
    new = table.parent / "providers/they/models/new.toml"
    new.write_text("[cost]\ninput = 1\noutput = 2\ncache_read = 3\n")
    renewal = renewed(table, table.parent, _SOURCE)
    assert (renewal.text, renewal.changed) == (table.read_text(), ())
    assert "should be at most the input's price" in renewal.doubted["they-new"]


def test_a_checkout_is_demanded(table: Path) -> None:
    """Another folder, or a file of another form, is refused before anything is written."""
    with pytest.raises(InputError, match="expected a checkout"):
        renewed(table, table.parent / "providers", _SOURCE)
    for text in ("input: 1", '[cost]\ninput = "free"\noutput = 1', _UNSIZED_TIER):
        (table.parent / "providers/they/models/new.toml").write_text(text)
        with pytest.raises(InputError, match=r"new\.toml: expected a model's TOML"):
            renewed(table, table.parent, _SOURCE)


def test_a_price_of_writing_to_the_cache_of_zero_is_none(table: Path) -> None:
    """A price of zero for writing to the cache is none, and tokens cost the input's price."""
    header = _HEADER.replace("output", "cache_write_per_million,output", 1)
    table.write_text(header + _ROW.format("new").replace(",1,,2,", ",1,,,2,"))
    new = table.parent / "providers/they/models/new.toml"
    for written, cell in ((0, ""), (1.25, "1.25")):
        new.write_text(f"[cost]\ninput = 1\noutput = 3\ncache_write = {written}\n")
        assert f"They,new,1,,{cell},3," in renewed(table, table.parent, _SOURCE).text
