"""Read and renew tables of token prices: CSV files in which each row is the price of one API.

The columns are the keys of ``ApiPrice`` except ``id``. The keys of ``ApiPrice.long`` have a prefix,
such as ``long.input_per_million``. An empty cell means that the key is missing. New prices come
from models.dev. A row's source names its file: ``anomalyco/models.dev@COMMIT, providers/….toml``.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import tomli

from epochcost.errors import Fault, InputError, SpecError
from epochcost.specs.api import ApiPrice, LongPrompts
from epochcost.specs.csv_rows import CsvRow, csv_rows
from epochcost.specs.document import display_path
from epochcost.specs.findings import Finding, validate
from epochcost.specs.prices.doubts import FEWEST_OTHERS, short
from epochcost.specs.prices.tables import PRINTED
from epochcost.specs.wording import KeyPath, got

_LONG = "long"
COLUMNS = (
    *(key for key in ApiPrice.model_fields if key not in {"id", _LONG, "unconfirmed"}),
    *(f"{_LONG}.{key}" for key in LongPrompts.model_fields),
)
_DEMANDED = [
    key for key, field in ApiPrice.model_fields.items() if field.is_required() and key != "id"
]
_NUMBERS = ("per_million", "tokens", "_percent")
# Words of messages about TOML, and those of the same messages about a cell.
_IN_A_CELL = {
    "should be a date without quotes": "should be a date",
    "required key is missing": "should not be empty",
    "id: should be an id: lower-case": "provider and name: should have",
}
_NOT_IN_ID = re.compile(r"[^a-z0-9._]+")
_LONGEST_ID = 80
_REPOSITORY = "anomalyco/models.dev"
_PRICED = ("per_million", "above_tokens")
_KEYS = {
    "input": "input",
    "cache_read": "cached_input",
    "cache_write": "cache_write",
    "output": "output",
}
# Smallest and largest ratio of a price to the input's. Output: 1 to 10 (gpt-oss-120b at io.net).
# Cached input: from 0.02 (DeepSeek Flash). Kept prompts: 1 to 2.5 (MiniMax M2.5 at DeepInfra).
SHARES = (
    ("output_per_million", "output", Decimal(1), Decimal(12)),
    ("cached_input_per_million", "cached input", Decimal("0.005"), Decimal(1)),
    ("cache_write_per_million", "kept input", Decimal("0.5"), Decimal("2.5")),
)
# Largest factor between a price (input plus output) and the median of the same model's prices at
# two or more other providers. Largest of plausible prices: 7.5 (Llama 3.2 3B at DeepInfra).
MOST_FROM_MEDIAN = Decimal(8)
# Largest factor by which a price may leave the range of the provider's other models, or of all
# models. Largest of plausible prices: 2.92 (Gemma 3 4B at Amazon Bedrock).
MOST_OUTSIDE = Decimal(3)
# The lowest and highest of 324 prices (input plus output), for a catalogue with few prices.
_USUAL = Decimal("0.04"), Decimal(60)
# Largest factor between a price and the next. In the history of models.dev, 88 % of 1,904 changes
# are smaller; some of the others are prices of one token or of a thousand tokens.
MOST_CHANGE = Decimal(5)


class ApiRow(NamedTuple):
    """A valid row of a table of token prices: its table and line, and the API's price."""

    path: Path
    line: int
    price: ApiPrice

    def fault(self, finding: Finding) -> Fault:
        """The fault of this row that ``finding`` describes."""
        return Fault(self.path, self.line, 1, str(finding))

    def place(self, _: KeyPath) -> str:
        """The position of this row as text for messages: ``path:line:col``."""
        return f"{display_path(self.path)}:{self.line}:1"


def read_api_prices(path: Path, models: Collection[str] | None) -> Iterator[ApiRow | Fault]:
    """Read the prices of a table row by row; yields a fault for each invalid key of a row.

    ``models`` are the ids that a row may name, or None if the ids are unknown.
    """
    try:
        for row in csv_rows(path, _DEMANDED, COLUMNS):
            if isinstance(row, Fault):
                yield replace(row, path=path)
                continue
            for part in judged_row(row.cells, models):
                if isinstance(part, str):
                    yield Fault(path, row.line, 1, part)
                else:
                    yield ApiRow(path, row.line, part)
    except SpecError as error:
        yield from (replace(fault, path=path) for fault in error.faults)


def judged_row(
    cells: Mapping[str, str], models: Collection[str] | None
) -> Iterator[ApiPrice | str]:
    """Validate a row of a table; yields the row's price, or a message for each fault."""
    table: dict[str, Any] = {}
    for name, cell in cells.items():
        if cell:
            outer, _, inner = name.rpartition(".")
            (table.setdefault(outer, {}) if outer else table)[inner] = _cell_value(inner, cell)
    table["id"] = api_id(str(table.get("provider", "")), str(table.get("name", "")))
    judged = validate(ApiPrice, table)
    if isinstance(judged, tuple):
        for message in map(str, judged):
            for words, in_a_cell in _IN_A_CELL.items():
                message = message.replace(words, in_a_cell)  # noqa: PLW2901
            yield message
    elif models is not None and judged.model not in {None, *models}:
        yield f"model: should be the id of a spec in models/, {got(str(judged.model), models)}"
    else:
        yield judged


def api_id(provider: str, name: str) -> str:
    """The id of an API, made from the provider and the provider's name of the model."""
    return _NOT_IN_ID.sub("-", f"{provider} {name}".lower()).strip("-._")[:_LONGEST_ID]


def _cell_value(key: str, cell: str) -> object:
    try:
        if key in {"as_of", "valid_until"}:
            return dt.date.fromisoformat(cell)
        if key.endswith(_NUMBERS):
            return int(cell) if cell.isdecimal() else Decimal(cell)
    except (ValueError, ArithmeticError):
        pass
    return cell


@dataclass(frozen=True)
class Renewal:
    """The new text of a table, and the ids of its changed rows.

    ``gone`` are rows whose file in models.dev is missing, has no prices or is deprecated.
    ``doubted`` has reasons why new prices are implausible or invalid. These rows stay unchanged.
    """

    text: str
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    doubted: Mapping[str, str]


class Commit(NamedTuple):
    """A commit of models.dev and its date: the source of the new prices."""

    digits: str
    day: dt.date


def renewed(table: Path, folder: Path, source: Commit, apis: Iterable[ApiPrice] = ()) -> Renewal:
    """Update a table of token prices from ``folder``, a checkout of models.dev at ``source``.

    Rows from other sources stay. A new price is rejected if it is invalid, or if it is implausible,
    compared with the old price and ``apis``. Without ``apis``, no valid price is rejected. Raises
    InputError without providers, or for an unreadable file.
    """
    if not (folder / "providers").is_dir():
        raise InputError(f"{folder}: expected a checkout of {_REPOSITORY}, with providers/")
    rows = [row.cells for row in csv_rows(table) if isinstance(row, CsvRow)]
    changed, gone, doubted = [], [], {}
    market = ApiMarket(apis)
    for at, row in enumerate(rows):
        repository, _, place = row["source"].partition(", ")
        if repository.partition("@")[0] != _REPOSITORY:
            continue
        name = api_id(row["provider"], row["name"])
        prices = _prices_by_column(folder / place)
        if prices is None:
            gone.append(name)
            continue
        new = {**row, **{key: prices.get(key, "") for key in row if key.endswith(_PRICED)}}
        if new == row:
            continue
        address = f"{_REPOSITORY}@{source.digits[:10]}, {place}"
        new |= {"as_of": str(source.day), "source": address}
        if reasons := _renewal_doubts(market, row, new):
            doubted[name] = reasons
        else:
            rows[at] = new
            changed.append(name)
    return Renewal(_csv_text(rows), tuple(changed), tuple(gone), doubted)


def _csv_text(rows: Sequence[Mapping[str, str]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _renewal_doubts(market: ApiMarket, row: Mapping[str, str], new_row: Mapping[str, str]) -> str:
    before, after = (next(judged_row(cells, None)) for cells in (row, new_row))
    if isinstance(after, str):
        return after
    if not market.apis:
        return ""
    changes = change_doubts(before, after) if isinstance(before, ApiPrice) else ()
    return "; ".join((*changes, *map(str, market.reasons(after))))


def _prices_by_column(model_file: Path) -> Mapping[str, str] | None:
    try:
        text = model_file.read_text("utf-8")
        return _listed_prices(tomli.loads(text, parse_float=Decimal))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError) as error:
        raise InputError(
            f"{display_path(model_file)}: expected a model's TOML, got: {error!r:.200}"
        ) from error


def _listed_prices(document: Mapping[str, Any]) -> Mapping[str, str] | None:
    cost = document.get("cost")
    if not isinstance(cost, dict) or not {"input", "output"} <= cost.keys():
        return None
    if document.get("status") == "deprecated":
        return None
    prices = _price_columns("", cost)
    for tier in cost.get("tiers", ())[:1]:
        prices |= _price_columns("long.", tier) | {"long.above_tokens": str(tier["tier"]["size"])}
    return prices


def _price_columns(prefix: str, cost: Mapping[str, Any]) -> dict[str, str]:
    return {
        f"{prefix}{column}_per_million": f"{PRINTED.plus(Decimal(cost[key])).normalize():f}"
        for key, column in _KEYS.items()
        # With a `cache_write` of 0, writing to the cache costs only the input.
        if key in cost and (key != "cache_write" or cost[key])
    }


def api_doubts(apis: Iterable[ApiPrice]) -> dict[str, Finding]:
    """The first implausible key of each implausible API, with all reasons, by the id of the API."""
    market = ApiMarket(apis)
    doubts = {api.id: tuple(market.reasons(api)) for api in market.apis}
    return {
        name: Finding(reasons[0].key, "; ".join(reason.message for reason in reasons))
        for name, reasons in doubts.items()
        if reasons
    }


def change_doubts(before: ApiPrice, after: ApiPrice) -> Iterator[str]:
    """Reasons why an API's new price is implausible, given its previous price."""
    last, now = _total(before), _total(after)
    if last and now and not 1 / MOST_CHANGE < now / last < MOST_CHANGE:
        times = f"{short(now / last)} times its last {short(last)}"
        yield f"input plus output is {short(now)}, {times}"


class ApiMarket:
    """All prices of APIs, with which the price of a single API is compared."""

    def __init__(self, apis: Iterable[ApiPrice]) -> None:
        self.apis = tuple(apis)
        self._alike: dict[tuple[str, str], list[ApiPrice]] = defaultdict(list)
        for api in self.apis:
            if _total(api):
                self._alike[_model(api), api.currency].append(api)
                self._alike[api.provider, api.currency].append(api)
                self._alike["", api.currency].append(api)

    def reasons(self, api: ApiPrice) -> Iterator[Finding]:
        """Reasons why a price is implausible; a sum of prices has the key of the higher price."""
        total = _total(api)
        elsewhere = [
            _total(peer)
            for peer in self._alike[_model(api), api.currency]
            if peer.provider != api.provider
        ]
        if total and len(elsewhere) > 1:
            usual = median(elsewhere)
            if not 1 / MOST_FROM_MEDIAN < total / usual < MOST_FROM_MEDIAN:
                times = f"{short(total / usual)} times the {short(usual)}"
                yield _sum_finding(api, f", {times} of the same model elsewhere")
        elif total:
            yield from self._from_others(api, total)
        yield from _share_reasons(api)

    def _from_others(self, api: ApiPrice, total: Decimal) -> Iterator[Finding]:
        peers, group = self._peer_totals(api, api.provider), f"{api.provider}'s other"
        if len(peers) < FEWEST_OTHERS:
            usual = _USUAL if api.currency == "USD" else ()
            peers, group = (*self._peer_totals(api, ""), *usual), "all"
        if peers and not (min(peers) / MOST_OUTSIDE < total < max(peers) * MOST_OUTSIDE):
            others = f"{group} models cost {short(min(peers))} to {short(max(peers))}"
            yield _sum_finding(api, f"; {others}")

    def _peer_totals(self, api: ApiPrice, group: str) -> tuple[Decimal, ...]:
        alike = self._alike[group, api.currency]
        return tuple(_total(peer) for peer in alike if peer.id != api.id)


def _total(api: ApiPrice) -> Decimal:
    return api.input_per_million + api.output_per_million


def _sum_finding(api: ApiPrice, reason: str) -> Finding:
    higher = max("output_per_million", "input_per_million", key=partial(getattr, api))
    return Finding((higher,), f"input plus output is {short(_total(api))}{reason}")


def _model(api: ApiPrice) -> str:
    return f"model {api.model or api.name.lower().rpartition('/')[2]}"


def _share_reasons(api: ApiPrice) -> Iterator[Finding]:
    for key, label, least, most in SHARES:
        price = getattr(api, key)
        if api.input_per_million and price:
            share = price / api.input_per_million
            if not least <= share <= most:
                yield Finding((key,), f"{label} is {short(share)} times the input")
