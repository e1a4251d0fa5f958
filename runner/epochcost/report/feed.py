"""Write `feed.xml`, an Atom feed (RFC 4287) of changed prices and costs; addresses are relative."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from epochcost.analysis.difference.rendering import render_winner, summary
from epochcost.report.escape import one_line, page_title
from epochcost.report.list_prices import Moved, moved_prices
from epochcost.report.pages.page import Report, html, machine_uri
from epochcost.units import money, share

URI = "feed.xml"
_MOST = 100


@dataclass(frozen=True)
class Entry:
    """An entry of the feed; ``key`` is unique, and an entry keeps its key in later builds."""

    key: str
    day: dt.date
    title: str
    link: str
    text: str


def feed(report: Report) -> str:
    """Render the feed of a site, with the newest entry first."""
    moved = map(_moved, moved_prices(report.catalogue))
    entries = list(islice(chain(_entry_of_changed_costs(report), moved), _MOST))
    root = Element("feed", xmlns="http://www.w3.org/2005/Atom")
    SubElement(root, "id").text = _id("feed")
    SubElement(root, "title").text = "epochcost: changed prices and costs"
    SubElement(root, "updated").text = _moment(
        max((entry.day for entry in entries), default=_EPOCH)
    )
    SubElement(SubElement(root, "author"), "name").text = "epochcost"
    SubElement(root, "link", rel="self", href=URI)
    SubElement(root, "link", href="changed.html")
    for entry in entries:
        element = SubElement(root, "entry")
        SubElement(element, "id").text = _id(entry.key)
        SubElement(element, "title").text = page_title(entry.title)
        SubElement(element, "updated").text = _moment(entry.day)
        SubElement(element, "link", href=entry.link)
        SubElement(element, "content", type="text").text = "\n".join(
            map(page_title, entry.text.splitlines())
        )
    indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


_EPOCH = dt.date(1970, 1, 1)


def _id(key: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"epochcost/{key}").urn


def _moment(day: dt.date) -> str:
    return f"{day.isoformat()}T00:00:00Z"


def _moved(moved: Moved) -> Entry:
    price = moved.price
    before, now = (money(amount, price.currency) for amount in (moved.before, moved.now))
    where = f", {price.region}" if price.region else ""
    change = share(moved.change, "+", 1)
    return Entry(
        key=f"price/{price.id}",
        day=price.as_of,
        title=f"{moved.hardware.name}, {price.plan}{where}: {before} to {now} an hour",
        link=html(machine_uri(moved.hardware.id)),
        text=f"{change} by the price of {price.as_of}; {one_line(price.source)}",
    )


def _entry_of_changed_costs(report: Report) -> Iterator[Entry]:
    publication, changes = report.publication, report.changes
    if isinstance(changes, str) or changes.is_empty:
        return
    days = [price.as_of for price in report.catalogue.prices.values()]
    days += [observed.date for observed in report.observations]
    yield Entry(
        key=f"changes/{publication.since}/{publication.revision}",
        day=max(days, default=_EPOCH),
        title=f"Costs: {summary(changes)}",
        link="changed.html",
        text="\n".join(map(one_line, map(render_winner, changes.winners))) or summary(changes),
    )
