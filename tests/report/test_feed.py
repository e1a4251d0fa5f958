"""The Atom feed: RFC 4287's requirements, and changed prices."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from xml.etree import ElementTree

from epochcost.report.escape import page_title
from epochcost.report.feed import feed
from epochcost.report.pages.page import Report
from report_specs import HOSTILE

_ATOM = "{http://www.w3.org/2005/Atom}"


def _with_a_newer_price(report: Report) -> tuple[Report, str]:
    """The report with a doubled price, on a machine whose name contains markup."""
    catalogue = report.catalogue
    price = next(entry for entry in catalogue.prices.values() if entry.amount and not entry.assumed)
    newer = price.model_copy(
        update={"id": "newer", "amount": price.amount * 2, "as_of": dt.date(2099, 1, 2)}
    )
    machine = catalogue.machine(price.hardware).model_copy(update={"name": HOSTILE})
    changed = replace(
        catalogue,
        prices={**catalogue.prices, "newer": newer},
        hardware={**catalogue.hardware, machine.id: machine},
    )
    return Report(replace(report.inputs, catalogue=changed)), machine.id


def _child(element: ElementTree.Element, name: str) -> str:
    (child,) = element.findall(_ATOM + name)
    return child.text or ""


def test_it_is_atom(report: Report) -> None:
    """Feed and entries each have an id, a title and a time; ids are unique and stable."""
    changed, machine = _with_a_newer_price(report)
    text = feed(changed)
    root = ElementTree.fromstring(text)  # noqa: S314  our own text
    assert root.tag == f"{_ATOM}feed"
    assert root.find(f"{_ATOM}author/{_ATOM}name") is not None
    entries = root.findall(f"{_ATOM}entry")
    ids = [_child(element, "id") for element in (root, *entries)]
    assert len(set(ids)) == len(ids)
    assert all(element.startswith("urn:uuid:") for element in ids)
    for element in (root, *entries):
        assert _child(element, "title")
        assert dt.datetime.fromisoformat(_child(element, "updated")).tzinfo
    newest = entries[0]
    assert page_title(HOSTILE) in _child(newest, "title")
    assert newest.find(f"{_ATOM}link").get("href") == f"machines/{machine}.html"
    assert _child(newest, "content").startswith("+100.0 %")
    assert _child(root, "updated") == _child(newest, "updated") == "2099-01-02T00:00:00Z"
    assert feed(changed) == text
