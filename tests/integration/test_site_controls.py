"""Folds and tables that users open, sort and filter."""

from __future__ import annotations

import json
import re

import pytest

from browsed_site import LIGHT, PHONE, Look, Site, open_and_count_shifts, overflow, wait_until
from epochcost.report.pages import home


def test_a_link_into_a_fold_opens_it(site: Site) -> None:
    """Any link to a place inside opens it; on paper it stays as the reader left it."""
    page = site.tab()
    page.goto(site.address + "data.html")
    fold = page.locator("details.ec-fold").last
    assert fold.get_attribute("open") is None
    page.evaluate(
        "document.querySelector('details.ec-fold td a').id = 'inside';"
        "history.replaceState(null, '', '#inside');"
        "dispatchEvent(new Event('hashchange'))"
    )
    wait_until(page, "document.querySelector('#inside').closest('details').open")
    fold.locator("summary").click()
    for is_open in (False, True):
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert fold.is_visible() == is_open
        page.emulate_media(media="screen")
        fold.evaluate("fold => { fold.open = true; }")


def test_paper_names_the_page_its_address_and_the_day(site: Site) -> None:
    """The head and the foot of printed pages take them from the style of the page."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    page.pdf()
    style = "name => document.documentElement.style.getPropertyValue(name)"
    assert page.evaluate(style, "--ec-title").endswith('epochcost"')
    assert f"{site.address}models/net.html" in page.evaluate(style, "--ec-address")


def test_paper_says_how_many_rows_it_leaves_out(site: Site) -> None:
    """Below a table cut to ten rows, but neither on the screen nor after "Show all"."""
    page = site.tab()
    written = (site.folder / "models/net.html").read_text(encoding="utf-8")
    rows = "".join(f"<tr><td>m {n}</td></tr>" for n in range(60))
    table = f"<table class='ec-sortable ec-brief'><thead><tr><th>Machine</th></tr></thead>{rows}"
    table = table.replace("</thead>", "</thead><tbody>") + "</tbody></table>"
    long = re.sub("<article.*?</article>", f"<article>{table}</article>", written, flags=re.DOTALL)
    long = long.replace("<article>", '<article class="md-content__inner md-typeset">')
    page.route("**/models/net.html", lambda route: route.fulfill(body=long))
    page.goto(site.address + "models/net.html")
    note = page.get_by_text("10 of 60 rows; the page on the screen has all.")
    visible = [note.is_visible()]
    page.emulate_media(media="print")
    visible.append(note.is_visible())
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Show all").click()
    page.emulate_media(media="print")
    visible.append(note.is_visible())
    assert visible == [False, True, False]
    display = "part => getComputedStyle(part).display"
    assert page.locator("thead").evaluate(display) == "table-header-group"
    assert page.locator("thead button").evaluate(display) == "contents"


def test_the_first_page_has_a_card_for_each_different_answer(site: Site) -> None:
    """Another job changes the number of cards, in both directions."""
    page, script = site.tab(), (site.folder / home.URI).read_text("utf-8")
    begin, _, rest = script.partition("=")
    answers = json.loads(rest.removesuffix(";\n"))
    cards = answers["net/train"]["cards"]
    cards.append({**cards[0], "title": "Fastest"})
    page.route(f"**/{home.URI}", lambda route: route.fulfill(
        body=f"{begin}={json.dumps(answers)};\n", content_type="text/javascript",
    ))  # fmt: skip
    page.goto(site.address + "index.html")
    titles = page.locator(".ec-card h2")
    assert titles.all_inner_texts() == ["Cheapest"]
    wait_until(page, "document.querySelector('[data-ec-home]').dataset.state === 'ready'")
    for job, number in (("train", 2), ("serve", 1), ("train", 2)):
        page.locator("[name=job]").select_option(job)
        wait_until(page, f"location.search.includes('job={job}')")
        assert titles.count() == number


def test_an_address_without_such_a_model_keeps_the_first_page(site: Site) -> None:
    """An unknown model in the address leaves the chosen model as it is."""
    page = site.tab()
    page.goto(site.address + "index.html?model=nosuch&job=serve")
    wait_until(page, "window.epochcostHome")
    chosen = page.locator("[data-ec-home] [name=model]").input_value()
    assert f"{chosen}/train" in page.evaluate("window.epochcostHome")


def test_a_script_that_failed_to_load_is_loaded_again(site: Site) -> None:
    """Data that a reader asked for without a connection arrive after the next question."""
    page = site.tab()
    page.goto(site.address + "index.html")
    page.route("**/later.js", lambda route: route.abort())
    load = "epochcostShown.loaded('later.js', 'later').catch(error => error.message)"
    assert page.evaluate(load) == "cannot load later.js"
    page.unroute("**/later.js")
    page.route("**/later.js", lambda route: route.fulfill(
        body="window.later = 1;", content_type="text/javascript",
    ))  # fmt: skip
    assert page.evaluate(load) == 1
    assert site.complaints == ["Failed to load resource: net::ERR_FAILED"]
    site.complaints.clear()


def test_paper_shows_the_chart_of_the_chosen_job(site: Site) -> None:
    """Paper has the static chart, until another job's chart replaces it."""
    page = site.tab()
    page.goto(site.address + "index.html")
    wait_until(page, "document.querySelector('[data-ec-home]').dataset.state === 'ready'")
    page.locator(".ec-plot").scroll_into_view_if_needed()
    wait_until(page, "document.querySelector('.ec-plot .ec-live + .ec-static')")
    page.emulate_media(media="print")
    assert page.locator(".ec-plot svg:visible").count() == 1
    assert page.locator(".ec-static svg").is_visible()
    page.emulate_media(media="screen")
    page.locator("[name=job]").select_option("serve")
    wait_until(page, "!document.querySelector('.ec-plot .ec-static')")
    page.emulate_media(media="print")
    assert page.locator(".ec-plot .ec-live svg").is_visible()


def test_paper_shows_charts_that_were_not_drawn(site: Site) -> None:
    """Charts in open folds are pictures, which are fetched only for print."""
    page = site.tab()
    page.goto(site.address + "models/net.html")
    picture = page.locator("details.ec-fold .ec-paper").first
    assert not picture.is_visible()
    opened = "one => { one.closest('details').open = true; return getComputedStyle(one).display }"
    assert picture.evaluate(opened) == "none"
    address = picture.evaluate("one => one.src")
    with page.expect_request_finished(lambda request: request.url == address):
        page.pdf()


@pytest.mark.parametrize("look", [LIGHT, PHONE], ids=["light", "phone"])
def test_a_long_table_is_sorted_filtered_and_turned_page_by_page(site: Site, look: Look) -> None:
    """Sixty rows take three pages, with little layout shift; a row with a dash stays last."""
    page = site.tab(look)
    written = (site.folder / "machines/index.html").read_text(encoding="utf-8")
    rows = "".join(f'<tr><td>m {n}</td><td data-order="{60 - n if n < 59 else ""}">—</td><td>$</td>'
                   f'{"<td>x</td>" * 3}<td>1</td></tr>' for n in range(60))  # fmt: skip
    long = re.sub("<tbody>.*?</tbody>", f"<tbody>{rows}</tbody>", written, flags=re.DOTALL)
    long = long.replace('class="ec-frame"', 'class="ec-frame ec-filtered"')
    page.route("**/machines/index.html", lambda route: route.fulfill(body=long))
    open_and_count_shifts(page, site.address + "machines/index.html")
    visible = page.locator(".ec-sortable tbody td:first-child:visible")
    following = page.get_by_role("button", name="Next")
    following.wait_for()
    # Before any input: on a busy machine, later shifts follow it by more than half a second.
    assert page.evaluate("window.shifted") <= 0.02
    following.click()
    following.click()
    assert following.is_disabled()
    assert visible.all_inner_texts() == [f"m {n}" for n in range(50, 60)]
    hours = page.get_by_role("columnheader", name="An hour")
    for direction, last in (("ascending", "m 34"), ("descending", "m 24")):
        hours.get_by_role("button").press("Enter")
        assert hours.get_attribute("aria-sort") == direction
        assert visible.all_inner_texts()[-1] == last
    page.get_by_label("Filter").fill("m 17")
    assert visible.all_inner_texts() == ["m 17"]
    assert page.get_by_role("status").inner_text() == "1 to 1 of 1 (of 60 rows)"
    page.get_by_label("Filter").fill("")
    page.emulate_media(media="print")
    assert visible.count() == 60
    page.emulate_media(media="screen")
    page.get_by_role("button", name="Show all").click()
    assert visible.count() == 60
    assert overflow(page) <= 0


@pytest.mark.parametrize("look", [LIGHT, PHONE], ids=["light", "phone"])
def test_machines_are_narrowed_by_their_values(site: Site, look: Look) -> None:
    """By provider, region, plan, GPU, its memory and price, together, with the keyboard."""
    page = site.tab(look)
    written = (site.folder / "machines/index.html").read_text(encoding="utf-8")
    rows = "".join(
        f'<tr data-filter="P{n % 2};east|r{n};{"spot|" * (n % 3 == 0)}on-demand;H100;{n};{n / 2}">'
        f"<td>m {n}</td>{'<td>x</td>' * 6}</tr>"
        for n in range(60)
    )
    long = re.sub("<tbody>.*?</tbody>", f"<tbody>{rows}</tbody>", written, flags=re.DOTALL)
    page.route("**/machines/index.html", lambda route: route.fulfill(body=long))
    page.goto(site.address + "machines/index.html")
    status = page.get_by_role("status")
    page.locator(".ec-bar summary").press("Enter")
    assert page.locator(".ec-bar label:visible").count() == 6  # GPU has one value: no field
    for title, value, left in (
        ("Provider", "P0", 30),
        ("Plan", "spot", 10),
        ("GPU memory from (GiB)", "20", 6),
        ("An hour up to ($)", "24", 5),
        ("Region", "r24", 1),
    ):
        field = page.get_by_label(title)
        (field.select_option if field.locator("option").count() else field.fill)(value)
        assert f" of {left} (of 60 rows)" in status.inner_text(), title
    assert page.locator(".ec-sortable tbody td:first-child:visible").all_inner_texts() == ["m 24"]
    assert overflow(page) <= 0
