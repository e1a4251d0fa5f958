"""Rows beside a catalogue: new, unchanged, unmatched or unsound, and the specs that come of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.errors import Fault, InputError, UsageError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.prices.importing import (
    ImportRequest,
    ImportResult,
    amount_of,
    new_specs,
    sort_rows,
)
from epochcost.specs.prices.tables import ListedPrice

HARDWARE = """\
id = "{name}"
name = "A machine"
provider = "{provider}"
vcpus = 4
source = "made up for a test"
{gpus}
"""
GPUS = "\n[[accelerators]]\nname = 'T4'\ncount = {count}\n"
PRICE = """\
id = "{name}-{plan}-{day:%Y-%m}"
hardware = "{name}"
plan = "{plan}" # a comment
provider = "{provider}"
sku = "{sku}"
{region}
{amount}
source = "made up for a test"
as_of = {day}
{rest}
"""
JANUARY, JULY = dt.date(2026, 1, 31), dt.date(2026, 7, 20)
REQUEST = ImportRequest(today=dt.date(2026, 11, 21), provider="aws", source="a list", as_of=JULY)
ROW = ListedPrice(Path("table.csv"), 2, "box.xlarge", "on-demand", "1.5", region="us-east-1")


class Project:
    """A folder of specs that a test fills."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, kind: str, name: str, text: str) -> None:
        """Write a spec."""
        path = self.root / "specs" / kind / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def machine(self, name: str, provider: str = "AWS EC2", gpus: int = 0) -> None:
        """A machine with so many GPUs."""
        text = HARDWARE.format(
            name=name, provider=provider, gpus=GPUS.format(count=gpus) if gpus else ""
        )
        self.write("hardware", name, text)

    def price(
        self,
        name: str = "box.xlarge",
        day: dt.date = JANUARY,
        amount: str = "amount = 1.25",
        region: str | None = "us-east-1",
        **others: str,
    ) -> None:
        """A price of a machine."""
        fields = {"plan": "on-demand", "provider": "AWS EC2", "sku": name, "rest": "", **others}
        place = "" if region is None else f'region = "{region}"'
        text = PRICE.format(name=name, day=day, amount=amount, region=place, **fields)
        self.write("prices", f"{name}-{fields['plan']}-{day:%Y-%m}", text)

    def load(self) -> Catalogue:
        """The catalogue as it is now."""
        return load_catalogue(self.root)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A machine of EC2 with a price of January in us-east-1."""
    monkeypatch.chdir(tmp_path)
    project = Project(tmp_path)
    project.machine("box.xlarge")
    project.price()
    return project


def sort(
    project: Project, *rows: ListedPrice | Fault, request: ImportRequest = REQUEST
) -> ImportResult:
    """The rows beside the project's catalogue."""
    return sort_rows(rows, project.load(), request)


def test_changed_price_becomes_a_spec_of_its_own(project: Project) -> None:
    """Another amount is a new file with the new date; the known price stays as it is."""
    result = sort(project, ROW)
    (spec,) = new_specs(result, project.load(), REQUEST)
    assert spec.path.name == "box.xlarge-on-demand-2026-07.toml"
    assert spec.price.previous == Decimal("1.25")
    before = (project.root / "specs/prices/box.xlarge-on-demand-2026-01.toml").read_text("utf-8")
    spec.path.write_text(spec.text, "utf-8")
    catalogue = project.load()
    price = catalogue.price("box.xlarge-on-demand-2026-07")
    assert (price.amount, price.as_of, price.source) == (Decimal("1.50"), JULY, "a list")
    assert (project.root / "specs/prices/box.xlarge-on-demand-2026-01.toml").read_text() == before


def test_same_amount_is_no_news(project: Project) -> None:
    """A later row with the known amount changes nothing, however many digits it is written with."""
    for text in ("1.25", "1.250000", "1.2500000000000002"):
        result = sort(project, replace(ROW, amount=text))
        assert [found.new for found in result.prices] == [False], text
        assert new_specs(result, project.load(), REQUEST) == ()


def test_price_of_an_earlier_day(project: Project) -> None:
    """A row is compared with what was known for its own day: history fills in, steps only."""
    days = [dt.date(2025, month, 1) for month in (1, 2, 3, 6)]
    rows = [
        replace(ROW, as_of=day, amount=amount, line=line)
        for line, (day, amount) in enumerate(zip(days, ("2", "2", "1.25", "1.25"), strict=True))
    ]
    result = sort(project, *rows)
    assert [found.new for found in result.prices] == [True, False, True, False]


def test_two_in_one_month(project: Project) -> None:
    """A second price of a month has the day in its id."""
    rows = [replace(ROW, as_of=dt.date(2026, 7, day), amount=str(day)) for day in (1, 20)]
    names = [spec.path.stem for spec in new_specs(sort(project, *rows), project.load(), REQUEST)]
    assert names == ["box.xlarge-on-demand-2026-07", "box.xlarge-on-demand-2026-07-20"]


def test_two_prices_of_one_day_are_refused(project: Project) -> None:
    """Two amounts for the same machine, plan, region and day are refused, and both are named."""
    result = sort(project, ROW, replace(ROW, line=3, amount="1.6"), replace(ROW, line=4))
    assert result.prices == ()
    assert [str(fault) for fault in result.faults] == [
        "table.csv:3:1: box.xlarge on-demand: expected one price of box.xlarge in us-east-1 on "
        "2026-07-20, got 1.6 here and 1.5 in table.csv:2"
    ]


def test_zones_that_differ(project: Project) -> None:
    """Spot prices that differ by zone are ambiguous until a zone is chosen."""
    project.price(plan="spot", amount="amount = 0.5")
    rows = [
        replace(ROW, plan="spot", zone=f"us-east-1{zone}", amount=amount)
        for zone, amount in (("a", "0.4"), ("b", "0.6"))
    ]
    assert "choose one with --zone" in str(sort(project, *rows).faults[0])
    chosen = sort(project, *rows, request=replace(REQUEST, zone="us-east-1b"))
    assert [found.amount for found in chosen.prices] == [Decimal("0.6")]
    assert chosen.faults == ()


def test_contradiction_of_the_same_day(project: Project) -> None:
    """A list that contradicts the catalogue about one day is a fault, never an overwriting."""
    result = sort(project, replace(ROW, as_of=JANUARY))
    assert "expected the 1.25 of box.xlarge-on-demand-2026-01" in str(result.faults[0])


@pytest.mark.parametrize(
    "text", ["", "0", "0.00", "-1", "NaN", "inf", "1,234.50", "$3", "1_000", "٣", "1e99", "free"]
)
def test_unsound_amounts(project: Project, text: str) -> None:
    """An amount that is no plain decimal above zero is a fault with its place."""
    with pytest.raises(ValueError, match="expected a price per hour above 0"):
        amount_of(text)
    result = sort(project, replace(ROW, amount=text))
    assert result.prices == ()
    assert str(result.faults[0]).startswith("table.csv:2:1: box.xlarge on-demand: expected a price")


def test_names_are_matched_as_lists_write_them(project: Project) -> None:
    """A machine is found by its id or a price's sku, with or without Azure's prefix and signs."""
    project.machine("nc6s-v3", "Azure")
    project.price("nc6s-v3", provider="Azure", sku="Standard_NC6s_v3")
    azure = replace(REQUEST, provider="azure")
    for name in ("Standard_NC6s_v3", "NC6s v3", "nc6s-v3"):
        assert sort(project, replace(ROW, sku=name), request=azure).prices, name


def test_accelerators_must_agree(project: Project) -> None:
    """A host's price is not taken for the price of the host with its GPUs."""
    project.machine("gpu.xlarge", gpus=4)
    project.price("gpu.xlarge")
    for counted, found in (("4", 1), ("4.0", 1), (None, 1), ("0", 0), ("1", 0), ("many", 0)):
        result = sort(project, ROW, replace(ROW, sku="gpu.xlarge", accelerators=counted))
        assert len(result.prices) == 1 + found, counted


def test_priced_in_parts(project: Project) -> None:
    """A price of components is changed by hand: one amount cannot say which part changed."""
    project.machine("parts.xlarge")
    parts = "\n[[components]]\nlabel = 'host'\namount = 1\n"
    project.price("parts.xlarge", amount="", rest=parts)
    result = sort(project, ROW, replace(ROW, sku="parts.xlarge"))
    assert "a price with components: change them by hand" in result.unmatched


def test_other_regions_only_when_asked_for(project: Project) -> None:
    """A region without a price is left alone; asked for, it gets a spec with its name in the id."""
    there = replace(ROW, region="eu-west-1")
    assert "a region in which the machine has no price" in sort(project, ROW, there).unmatched
    asked = replace(REQUEST, region="eu-west-1")
    result = sort(project, ROW, there, request=asked)
    (spec,) = new_specs(result, project.load(), asked)
    assert spec.path.stem == "box.xlarge-on-demand-eu-west-1-2026-07"
    assert 'region = "eu-west-1"' in spec.text


def test_first_spot_price(project: Project) -> None:
    """A machine's first spot price is written after its on-demand price."""
    (spec,) = new_specs(sort(project, replace(ROW, plan="spot")), project.load(), REQUEST)
    assert spec.path.stem == "box.xlarge-spot-2026-07"
    assert '\nplan = "spot"\n' in spec.text


def test_table_without_regions(project: Project) -> None:
    """If prices have regions and the table has none, --region names the table's region."""
    row = replace(ROW, region=None)
    with pytest.raises(InputError, match="give --region"):
        sort(project, row)
    assert sort(project, row, request=replace(REQUEST, region="us-east-1")).prices[0].new


@pytest.mark.parametrize("missing", ["provider", "as_of", "source"])
def test_what_nobody_says(project: Project, missing: str) -> None:
    """Provider, day and source are required where neither table nor options give them."""
    changed: dict[str, None] = {missing: None}
    request = replace(REQUEST, **changed)  # type: ignore[arg-type]
    option = missing.replace("_", "-")
    with pytest.raises(UsageError, match=rf"--{option}( DATE)? is required"):
        new_specs(sort(project, ROW, request=request), project.load(), request)
