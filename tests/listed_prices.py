"""Rows of price tables and a small catalogue, for tests of imports."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from epochcost.errors import Fault
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.prices.importing import ImportRequest, ImportResult, sort_rows
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
    """A folder of specs, to which a test adds."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, kind: str, name: str, text: str) -> None:
        """Write a spec."""
        path = self.root / "specs" / kind / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def machine(self, name: str, provider: str = "AWS EC2", gpus: int = 0) -> None:
        """Write a machine with this number of GPUs."""
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
        """Write a price of a machine."""
        fields = {"plan": "on-demand", "provider": "AWS EC2", "sku": name, "rest": "", **others}
        place = "" if region is None else f'region = "{region}"'
        text = PRICE.format(name=name, day=day, amount=amount, region=place, **fields)
        self.write("prices", f"{name}-{fields['plan']}-{day:%Y-%m}", text)

    def commitment(self, hourly: str) -> None:
        """Write a price of a year's commitment."""
        paid = f'[commitment]\nterm_months = 12\npayment = "no-upfront"\nhourly = {hourly}'
        self.price(plan="committed-use", amount="", rest=paid)

    def load(self) -> Catalogue:
        """The catalogue of the present specs."""
        return load_catalogue(self.root)


def sort(
    project: Project, *rows: ListedPrice | Fault, request: ImportRequest = REQUEST
) -> ImportResult:
    """Compare the rows with the project's catalogue."""
    return sort_rows(rows, project.load(), request)
