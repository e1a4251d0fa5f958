"""Render pages as Markdown: the Jinja environment, and the filters of templates."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
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
from epochcost.report.tables import Table, as_html
from epochcost.specs.api import ApiPrice
from epochcost.specs.price import Price

_ADDRESS = re.compile(r"[A-Za-z0-9._/-]+")
_BLANK_LINES = re.compile(r"\n{3,}")
# An indented line of a template continues the previous one: rows and sentences are long.
_CONTINUED = re.compile(r"\n {4,}(?=\S)")
_GIB = 2**30


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


def _count(value: Decimal | int | float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"


def _date(day: dt.date) -> Markup:
    return Markup(f'<span class="ec-date">{day:%Y-%m-%d}</span>')  # noqa: S704  digits only


def price_date(price: Price | ApiPrice) -> Markup:
    """Write the day of a price, with its age if it is older than 60 days."""
    return Markup(", ".join(filter(None, (_date(price.as_of), price.age))))  # noqa: S704  digits only


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / _GIB:.1f} GiB"


def _table(table: Table) -> Markup:
    return Markup(as_html(table))  # noqa: S704  each cell is escaped


def _hour(price: Price) -> str:
    hour = hourly(price)
    return "" if hour is None else f"{hour:.4g}"


def _energy_cost_per_hour(price: Price) -> str:
    assert price.owned is not None, "the template asks for owned plans only"
    return units.money(energy_per_hour(price.owned), price.currency)


def _owned_hour(price: Price) -> str:
    hour = hourly(price, vcpus=1)
    return "unknown" if hour is None else units.money(hour, price.currency)


_FILTERS: dict[str, Callable[..., Any]] = {
    "amount": units.money,
    "amount_about": units.money_about,
    "bytes": units.memory,
    "billing": wording.render_billing,
    "cost": wording.render_cost,
    "cost_range": wording.cost_range,
    "count": _count,
    "counted": units.render_count,
    "odds_sentence": odds_sentence,
    "software": units.render_software,
    "gib": _gib,
    "date": _date,
    "decimal": lambda number: Decimal(repr(number)),
    "goal": GOAL_NAMES.__getitem__,
    "hour": _hour,
    "hour_rate": wording.render_hour,
    "hour_about": wording.hour_about,
    "job": JOB_NAMES.__getitem__,
    "joules": lambda energy: f"{units.rounded(energy)} J",
    "kilograms": lambda mass: units.thousands(mass, "g"),
    "kwh": lambda energy: units.thousands(energy, "Wh"),
    "linked": with_links,
    "machine_uri": lambda hardware: address(machine_uri(hardware)),
    "month": wording.render_month,
    "month_hour": wording.render_month_hour,
    "energy_of_use": _energy_cost_per_hour,
    "owned_hour": _owned_hour,
    "page_title": page_title,
    "place": wording.render_place,
    "plain": units.plain,
    "prefixed": units.prefixed,
    "price_date": price_date,
    "price_paid": wording.price_paid,
    "rate": wording.render_rate,
    "ratio": wording.render_ratio,
    "per_second": wording.render_per_second,
    "rounded": units.rounded,
    "scenarios": scenarios,
    "scientific": lambda value: units.scientific(float(value)),
    "seconds": units.seconds,
    "share": units.share,
    "mark": wording.render_mark,
    "shape": wording.SHAPES.__getitem__,
    "spread": wording.spread,
    "table": _table,
    "workload_uri": lambda workload: address(workload_uri(workload)),
    "time": wording.render_time,
    "time_range": wording.time_range,
    "times": wording.render_times,
    "times_range": wording.times_range,
    "uri": address,
}
