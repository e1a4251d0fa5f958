"""Tables of token prices: each row is a price by id, and each fault has its line."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.cost.tracing import is_traced, symbol
from epochcost.errors import SpecError
from epochcost.specs.loader import check_paths, load_catalogue
from tiny_project import write_tiny_project

_HEADER = (
    "provider,name,model,input_per_million,cached_input_per_million,output_per_million,"
    "long.above_tokens,long.input_per_million,long.output_per_million,as_of,source\n"
)
_SPEC = """
id = "list"
name = "A list"
table = "list.csv"
licence = "MIT"
source = "made up"
"""
_SOUND = "They,org/Tiny-1B,tiny,0.5,0.1,2,1000,1,3,2026-07-02,made up\n"


def with_rows(root: Path, *rows: str) -> Path:
    """A project with a table that has these rows."""
    write_tiny_project(root)
    folder = root / "specs/api-tables"
    folder.mkdir()
    (folder / "list.toml").write_text(_SPEC)
    (folder / "list.csv").write_text("".join(rows))
    return root


def test_a_row_is_a_price(tmp_path: Path) -> None:
    """A row becomes a price with an id of provider and name, and with its further prices."""
    root = with_rows(tmp_path, _HEADER, _SOUND, "Them,closed,,1,,2,,,,2026-07-02,made up\n")
    apis = load_catalogue(root).apis
    assert sorted(apis) == ["them-closed", "they-org-tiny-1b"]
    api = apis["they-org-tiny-1b"]
    assert api.model == "tiny"
    assert api.request(1000, 100) * 1_000_000 == 700
    assert api.request(1000, 100, Decimal("0.5")) * 1_000_000 == 500
    assert api.request(1001, 100) * 1_000_000 == 1301
    shares = Decimal(0), Decimal(0)
    assert is_traced(api.undiscounted(symbol("prompt"), Decimal(100), *shares))
    assert apis["them-closed"].request(1000, 100, Decimal("0.5")) * 1_000_000 == 1200


def test_a_discount_for_batches_is_a_number(tmp_path: Path) -> None:
    """The column ``batch_percent`` is read as a number."""
    rows = _HEADER.replace("long.above_tokens", "batch_percent"), _SOUND.replace("1000,1,3", "50,,")
    (api,) = load_catalogue(with_rows(tmp_path, *rows)).apis.values()
    assert api.batch_percent == 50


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ((_HEADER, _SOUND, _SOUND), "3:1: provider and name: should differ from those of every"),
        ((_HEADER, _SOUND.replace("tiny", "tinny")), "2:1: model: should be the id of a spec"),
        ((_HEADER, _SOUND.replace("0.5", "cheap")), "2:1: input_per_million: should be a number"),
        ((_HEADER, _SOUND.replace("0.1", "0.6")), "should be at most the input's price, 0.5"),
        ((_HEADER, _SOUND.replace("2026-07-02", "July")), "2:1: as_of: should be a date, such"),
        ((_HEADER, _SOUND.replace("made up", "")), "2:1: source: should not be empty"),
        (
            (_HEADER, _SOUND.replace("They,org/Tiny-1B", "他,他")),
            "1: provider and name: should have",
        ),
        ((_HEADER, "They,short\n"), "2:1: expected 11 cells, as in the header, got 2"),
        ((_HEADER.replace("name", "nme"), _SOUND), '1:1: expected known columns, got "nme"; did'),
        ((_HEADER.replace("as_of", "notes"), _SOUND), "name, found no as_of"),
        (("",), "1:1: expected a header with the names of the columns, got an empty file"),
    ],
)
def test_a_fault_has_its_line(tmp_path: Path, rows: tuple[str, ...], fault: str) -> None:
    """Bad rows are faults at their line, even if a check is only of the table's spec."""
    root = with_rows(tmp_path, *rows)
    faults = "\n".join(map(str, check_paths([root]).faults))
    assert fault in faults
    assert fault in "\n".join(map(str, check_paths([root / "specs/api-tables/list.toml"]).faults))
    with pytest.raises(SpecError, match=r"list\.csv"):
        load_catalogue(root)


def test_the_committed_tables_name_our_models() -> None:
    """Prices of open models name a model of the catalogue, those of closed models none."""
    apis = load_catalogue(Path(__file__).parents[3]).apis
    assert len(apis) >= 300
    assert apis["groq-llama-3.1-8b-instant"].model == "llama-3.1-8b"
    assert apis["openai-gpt-5"].model is None
    assert any(api.model == "deepseek-v3" and api.cached_input_per_million for api in apis.values())


def test_a_doubt_of_a_spec_has_the_line_of_its_key(tmp_path: Path) -> None:
    """A doubted price in specs/apis is reported at the line of the doubted key."""
    spec = write_tiny_project(tmp_path) / "specs/apis/theirs.toml"
    lines = ['id = "theirs"', 'name = "tiny"', 'provider = "They"', "input_per_million = 0.5"]
    lines += ["output_per_million = 40000", "as_of = 2026-07-02", 'source = "made up"']
    spec.parent.mkdir()
    spec.write_text("\n".join(lines))
    (doubt,) = check_paths([spec]).doubts
    assert (doubt.line, doubt.message.partition(":")[0]) == (5, "output_per_million")


@pytest.mark.parametrize(
    "row",
    [("0.5,0.1,2,1000,1,3", "15000,,75000,1000,15000,75000"), ("0.5,0.1,2", "0.0000005,,0.000002")],
)
def test_a_doubt_has_its_line(tmp_path: Path, row: tuple[str, str]) -> None:
    """A price in a wrong unit is a doubt at its line, and no fault."""
    root = with_rows(tmp_path, _HEADER, _SOUND.replace(*row))
    report = check_paths([root])
    (doubt,) = report.doubts
    (api,) = load_catalogue(root).apis.values()
    assert not report.faults
    assert (doubt.path.name, doubt.line) == ("list.csv", 2)
    assert doubt.message.endswith(f"_per_million: {api.doubt}")
