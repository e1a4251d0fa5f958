"""Update a table of token prices from models.dev: a folder with a TOML file for each model.

The source of a row, ``anomalyco/models.dev@COMMIT, providers/….toml``, names its file.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import tomli

from epochcost.errors import InputError
from epochcost.specs.api import ApiPrice
from epochcost.specs.document import display_path
from epochcost.specs.prices.api_doubts import ApiMarket, change_doubts
from epochcost.specs.prices.api_table import api_id, judged_row
from epochcost.specs.prices.tables import csv_rows

_REPOSITORY = "anomalyco/models.dev"


@dataclass(frozen=True)
class Renewal:
    """The new text of a table, the ids of changed rows, and the ids of rows whose file is gone.

    ``doubted`` has a reason for each row whose new price cannot be right; in the text, such a row
    keeps its old price.
    """

    text: str
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    doubted: Mapping[str, str]


class Stated(NamedTuple):
    """The commit of a checkout of models.dev, and the commit's date."""

    commit: str
    day: dt.date


def renewed(table: Path, folder: Path, stated: Stated, apis: Iterable[ApiPrice] = ()) -> Renewal:
    """Update a table with the prices of a checkout; rows with unchanged prices stay as they are.

    Each new price is compared with the prices ``apis``; without them, every new price is accepted.
    Raises InputError if the folder has no providers, or one of its files cannot be read.
    """
    if not (folder / "providers").is_dir():
        raise InputError(f"{folder}: expected a checkout of {_REPOSITORY}, with providers/")
    (_, header), *lines = csv_rows(table)
    rows = [dict(zip(header, cells, strict=False)) for _, cells in lines]
    changed, gone, doubted = [], [], {}
    market = ApiMarket(apis)
    for at, row in enumerate(rows):
        place, name = row["source"].partition(", ")[2], api_id(row["provider"], row["name"])
        prices = _prices(folder / place)
        if prices is None:
            gone.append(name)
            continue
        new = row | {key: prices.get(key, "") for key in header if key.endswith(_PRICED)}
        if new == row:
            continue
        source = f"{_REPOSITORY}@{stated.commit[:10]}, {place}"
        new |= {"as_of": str(stated.day), "source": source}
        if reasons := _reasons(market, header, row, new):
            doubted[name] = reasons
        else:
            rows[at] = new
            changed.append(name)
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, header, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return Renewal(text.getvalue(), tuple(changed), tuple(gone), MappingProxyType(doubted))


def _reasons(
    market: ApiMarket, header: Sequence[str], row: Mapping[str, str], new: Mapping[str, str]
) -> str:
    """Reasons why a row's new price cannot be right; empty if there are no prices to compare."""
    if not market.apis:
        return ""
    before, after = (
        next(judged_row(header, [cells[key] for key in header], None)) for cells in (row, new)
    )
    if isinstance(after, str):
        return after
    changes = change_doubts(before, after) if isinstance(before, ApiPrice) else ()
    return "; ".join((*changes, *market.reasons(after)))


# Some files have binary fractions (0.049999999999999996); prices have at most these digits.
_PRINTED = Context(prec=12)
_PRICED = ("per_million", "above_tokens")
_KEYS = {
    "input": "input",
    "cache_read": "cached_input",
    "cache_write": "cache_write",
    "output": "output",
}


def _prices(path: Path) -> Mapping[str, str] | None:
    """The price columns of a model from its file; None if the file or its prices are missing."""
    try:
        text = path.read_text("utf-8")
        cost = tomli.loads(text, parse_float=Decimal).get("cost")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{display_path(path)}: expected a model's TOML, got: {error}") from error
    if not isinstance(cost, dict) or not {"input", "output"} <= cost.keys():
        return None
    prices = _columns("", cost)
    for tier in cost.get("tiers", ())[:1]:
        prices |= _columns("long.", tier) | {"long.above_tokens": str(tier["tier"]["size"])}
    return prices


def _columns(prefix: str, cost: Mapping[str, Any]) -> dict[str, str]:
    """The price columns from the table of costs in a model's file.

    A ``cache_write`` of 0 means that writing to the cache costs no more than the input itself.
    """
    return {
        f"{prefix}{column}_per_million": f"{_PRINTED.plus(Decimal(cost[key])).normalize():f}"
        for key, column in _KEYS.items()
        if key in cost and (key != "cache_write" or cost[key])
    }
