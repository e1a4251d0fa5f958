"""Render pages as Markdown: the Jinja environment, and the filters of templates.

Each function of `units` and `wording` is a filter.
"""

from __future__ import annotations

import datetime as dt
import inspect
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from epochcost import units
from epochcost.analysis.odds import odds_sentence, scenarios
from epochcost.analysis.rows import GOAL_NAMES
from epochcost.cost.estimate import Unpriced
from epochcost.cost.owned import energy_per_hour
from epochcost.errors import InputError
from epochcost.report import wording
from epochcost.report.escape import markdown_text, page_title, with_links
from epochcost.report.list_prices import hourly
from epochcost.report.pages.page import JOB_NAMES, Page, machine_uri, workload_uri
from epochcost.specs.api import ApiPrice
from epochcost.specs.price import Price

_ADDRESS = re.compile(r"[A-Za-z0-9._/-]+")
_BLANK_LINES = re.compile(r"\n{3,}")
# An indented line of a template continues the previous one: rows and sentences are long.
_CONTINUED = re.compile(r"\n {4,}(?=\S)")


def environment(folder: Path, currency: str = "USD") -> Environment:
    """Set up Jinja, which escapes strings; ``currency`` is that of amounts that readers enter."""
    jinja = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        finalize=markdown_text,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters.update(_FILTERS)
    jinja.globals["symbol"] = units.symbol(currency).strip()
    jinja.tests["unpriced"] = lambda cost: isinstance(cost, Unpriced)
    return jinja


def render(templates: Environment, page: Page) -> str:
    """Render a page as Markdown; raises InputError with the name of an invalid template."""
    try:
        template = templates.get_template(f"pages/{page.template}")
        # The address of the root consists of dots and slashes only.
        text = template.render(page=page, root=Markup(page.root), **page.context)  # noqa: S704
    except TemplateError as error:
        place = f"{page.template}:{getattr(error, 'lineno', '?')}"
        raise InputError(f"{place}: {type(error).__name__}: {error}") from error
    joined = _CONTINUED.sub(" ", text).replace(" <br>", "<br>")
    return _BLANK_LINES.sub("\n\n", joined).strip() + "\n"


def address(uri: str) -> Markup:
    """Mark an address as safe HTML; raises InputError for other than letters, digits and ._/-."""
    if not _ADDRESS.fullmatch(uri):
        raise InputError(f"address: expected letters, digits and ._/- only, got {uri!r}")
    return Markup(uri)  # noqa: S704  the characters were just checked


def _functions_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    functions = inspect.getmembers(module, inspect.isfunction)
    return {name: each for name, each in functions if each.__module__ == module.__name__}


def _count(value: Decimal | int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def _date(day: dt.date) -> Markup:
    return Markup(f'<span class="ec-date">{day:%Y-%m-%d}</span>')  # noqa: S704  digits only


def price_date(price: Price | ApiPrice) -> Markup:
    """Write the day of a price, with its age if it is older than 60 days."""
    return Markup(", ".join(filter(None, (_date(price.as_of), price.age))))  # noqa: S704  digits only


def _hour(price: Price) -> str:
    hour = hourly(price)
    return "" if hour is None else f"{hour:.4g}"


def _owned_hour(price: Price) -> str:
    hour = hourly(price, vcpus=1)
    return "unknown" if hour is None else units.money(hour, price.currency)


_FILTERS: dict[str, Callable[..., Any]] = {
    **_functions_of(units),
    **_functions_of(wording),
    "count": _count,
    "date": _date,
    "decimal": lambda number: Decimal(repr(number)),
    "energy_per_hour": energy_per_hour,
    "goal": GOAL_NAMES.__getitem__,
    "hour": _hour,
    "job": JOB_NAMES.__getitem__,
    "joules": lambda energy: f"{units.rounded(energy)} J",
    "machine_uri": lambda hardware: address(machine_uri(hardware)),
    "odds_sentence": odds_sentence,
    "owned_hour": _owned_hour,
    "page_title": page_title,
    "price_date": price_date,
    "scenarios": scenarios,
    "shape": wording.SHAPES.__getitem__,
    "uri": address,
    "with_links": with_links,
    "workload_uri": lambda workload: address(workload_uri(workload)),
}
