"""The calculator's page in Chromium: questions, addresses, limits, and offline use."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from playwright.sync_api import Locator, Page

from browsed_site import LIGHT, PHONE, Look, Site, overflow, wait_until
from epochcost.analysis.answers import Demand, cheapest_answer
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.times import times_of
from epochcost.cost.break_even import monthly_owned
from epochcost.cost.compare import NO_LIMITS
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.report.wording import amount_in_sentence
from epochcost.specs.loader import load_catalogue

_PLANS, _NET = "data/calculator/plans.js", "data/calculator/net.js"
_SETTLED = "document.querySelector('[data-ec-calculator]').dataset.state === 'ready'"


def ask(site: Site, question: str, look: Look = LIGHT) -> Page:
    """Open the page with a question in its address, and wait for the answer."""
    page = site.tab(look)
    page.goto(f"{site.address}calculator.html{question}")
    wait_until(page, _SETTLED)
    return page


def ask_with(site: Site, file: str, text: str, question: str, look: Look = LIGHT) -> Page:
    """Ask a question of the page with another text in one of its files of data."""
    page = site.tab(look)
    page.route(f"**/{file}", lambda route: route.fulfill(body=text, content_type="text/javascript"))
    page.goto(f"{site.address}calculator.html{question}")
    wait_until(page, _SETTLED)
    return page


def number(cells: Locator, at: int) -> float:
    """The exact number by which a table sorts one of these cells."""
    return float(cells.nth(at).get_attribute("data-order") or 0)


def text_of(page: Page) -> str:
    """The whole answer, with or without framed tables."""
    return " ".join(page.locator(".ec-calculated").inner_text().split())


@pytest.mark.parametrize("look", [LIGHT, PHONE], ids=["light", "phone"])
def test_the_address_keeps_the_question(site: Site, look: Look) -> None:
    """Three trainings a week, by form, then by address; "start over" resets it."""
    page = ask(site, "", look)
    first = text_of(page)
    page.locator("[name=runs]").fill("3")
    page.locator("[name=every]").select_option("week")
    wait_until(page, "location.search === '?job=train&model=net&runs=3&every=week'")
    assert "a month" in text_of(page)
    assert text_of(ask(site, "?runs=3&every=week", look)) == text_of(page)
    assert overflow(page) <= 0
    page.locator("summary", has_text="assumptions").click()
    page.get_by_role("button", name="Start over").click()
    wait_until(page, "location.search === ''")
    assert text_of(page) == first


# One address each, since only a key's first value counts.
_ADDRESSES = (
    "epochs=-1&weekly=-1&purchase=-1&electricity=-1e308&runs=-3&failed=-1&interruptions=-1&deadline=-1",
    "epochs=1e300&weekly=1000&electricity=Infinity&runs=1e400&failed=100&budget=-1&hours=0",
    "epochs=NaN&weekly=x&own=nowhere&electricity=0x10&runs=&prices=nowhere&model=nowhere&deadline=%ff",
    "1=x&length=NaN&item=x&elements=x&__proto__=x&constructor=x&submit=x&dataset=x&0=x&=x",
    "job=bake&every=eon&a=nowhere&b=%00&within=-1&rate=0&busy=101&model=../../bill",
    "%",
)


def test_an_address_fills_in_only_what_a_hand_could(site: Site) -> None:
    """Unknown keys and values out of bounds change nothing."""
    plain = text_of(ask(site, ""))
    for address in _ADDRESSES:
        assert text_of(ask(site, f"?{address}#{address}")) == plain, address


@pytest.mark.parametrize("text", ["1E2", "1e+2", ".5", "-0"])
def test_a_number_keeps_its_spelling_in_the_address(site: Site, text: str) -> None:
    """The address that the form writes gives the same answer."""
    page = ask(site, "?model=net")
    page.locator("[name=budget]").fill(text)
    wait_until(page, "location.search.includes('budget=')")
    again = ask(site, page.evaluate("location.search"))
    assert again.get_by_role("alert").count() == 0
    assert text_of(again) == text_of(page)


def test_what_a_hand_fills_in_beyond_the_bounds_does_not_count(site: Site) -> None:
    """The form marks it, and answer and address ignore it."""
    page = ask(site, "")
    plain = text_of(page)
    page.locator("summary", has_text="Your own machine").click()
    for name, value in (("weekly", "-1"), ("electricity", "-1e308"), ("epochs", "-1")):
        page.locator(f"[name={name}]").fill(value)
        assert text_of(page) == plain
        assert page.locator(f"[name={name}]:invalid").count() == 1
    assert page.evaluate("location.search") == ""


def test_an_ignored_number_is_explained_at_its_field(site: Site) -> None:
    """From the form and from the address, until the field has a valid number."""
    page = ask(site, "?model=net&job=serve&budget=-1")
    budget, rate = (page.locator(f"label:has([name={name}])") for name in ("budget", "rate"))
    assert "a number from 0 to 1,000,000,000,000,000." in budget.inner_text()
    for value in ("0", "-3"):
        page.locator("[name=rate]").fill(value)
        assert "a number from 0.000001 to 1,000,000,000." in rate.inner_text()
    page.locator("[name=rate]").fill("3")
    assert page.get_by_role("alert").count() == 0
    none = ask(site, "?model=net&examples=0")
    assert "a number from 1 to" in none.get_by_role("alert").inner_text()


def test_the_closest_to_a_missed_deadline_is_the_fastest(site: Site) -> None:
    """The list begins with the shortest time, at any cost."""
    page = ask(site, "?model=net&prices=&deadline=0.000001")
    assert "The closest:" in text_of(page)
    rows = page.locator(".ec-calculated > div > .ec-frame tbody tr").all()
    costs, times = ([number(row.locator("td"), at) for row in rows] for at in (1, 2))
    assert times == sorted(times)
    assert costs != sorted(costs)
    fastest = rows[0].locator("a").first.inner_text()
    assert f" on {fastest}" in page.locator(".ec-verdict").inner_text()
    # No machine is within the limit, so none is the cheapest within it.
    assert all(row.locator("td").nth(3).inner_text().startswith("—") for row in rows)
    owned = text_of(ask(site, "?model=net&prices=&deadline=0.000001&own=local"))
    assert "The closest of the others: " in owned


def test_the_verdict_names_unconfirmed_values_of_the_price(site: Site) -> None:
    """In a paragraph of its own."""
    plans = (site.folder / _PLANS).read_text("utf-8")
    doubted = plans.replace('"unconfirmed":""', '"unconfirmed":"date and billing"')
    page = ask_with(site, _PLANS, doubted, "?model=net")
    assert "does not confirm its date and billing: ask the provider" in text_of(page)


def test_limits_are_kept_in_so_many_scenarios(site: Site) -> None:
    """A deadline and a budget at the mean hold in about half of the draws."""
    page = ask(site, "?model=net&software=onnxruntime&prices=owned")
    cells = page.locator("tbody td")
    hours, dollars = number(cells, 2), number(cells, 1)
    limits = f"&deadline={hours / 3600 * 1.001}&budget={dollars * 1.001}"
    answer = text_of(ask(site, f"?model=net&software=onnxruntime&prices=owned{limits}"))
    match = re.search(r"in time in (\d+) of 100, within the budget in (\d+) of 100 scen", answer)
    assert match is not None
    assert "It may not fit: in time" in answer
    fitting = text_of(ask(site, "?model=net&software=onnxruntime&prices=owned&budget=1000"))
    assert "It fits: within the budget in 100 of 100 scenarios." in fitting
    assert all(35 <= int(share) <= 65 for share in match.groups())


def test_one_software_is_compared_at_a_time(site: Site) -> None:
    """Published trainings and ours are never in one list."""
    data = (site.folder / _NET).read_text("utf-8")
    ours = '"ONNX Runtime 1.0","stack":"onnxruntime"'
    assert ours in data
    lists, changed = [], data.replace(ours, ours.replace("onnxruntime", "published"))
    for software in ("onnxruntime", "published"):
        page = ask_with(site, _NET, changed, f"?model=net&prices=&software={software}", PHONE)
        cells = page.locator(".ec-calculated > div tbody tr td:last-child").all_text_contents()
        lists.append({"ONNX Runtime 1.0" in cell for cell in cells})
    assert lists == [{False}, {True}]
    assert text_of(ask(site, "?software=nothing")) == text_of(ask(site, ""))


def test_a_busier_server_costs_less_a_request(site: Site) -> None:
    """A month costs the same at a thousandth of the requests, so each costs 1000 times as much."""
    costs = []
    for rate in (100, 0.1):
        page = ask(site, f"?model=net&job=serve&prices=owned&rate={rate}")
        verdict = page.locator(".ec-verdict").inner_text()
        assert re.search("for 1 . This machine", verdict)
        assert "99 % answered within" in verdict
        cells = page.locator("tbody td")
        costs.append((number(cells, 1), number(cells, 2) * rate))
    (whole, each), (idle_whole, idle_each) = costs
    assert whole == idle_whole
    assert each == pytest.approx(idle_each)
    assert "times as much" in verdict
    # A request alone on its machine takes as long as a step: 1.075 ms on average.
    assert number(page.locator("tbody td"), 3) == pytest.approx(0.001075)
    slow = ask(site, "?model=net&job=serve&prices=owned&within=0.001")
    assert "too slow" in text_of(slow)


def test_an_owned_server_is_in_use_for_at_least_its_hours(site: Site) -> None:
    """All day it costs the whole machine, at any utilisation; for a part of it, the stated use."""
    asked = "?model=net&job=serve&prices=owned&rate=1"
    texts = {query: text_of(ask(site, asked + query)) for query in ("", "&weekly=17")}
    assert texts[""] == texts["&weekly=17"]
    assert "Counted: the whole machine, in use 168 hours a week (owned machines)" in texts[""]
    page = ask(site, asked)
    cost = number(page.locator("tbody td"), 1)
    plan = load_catalogue(site.folder.parent).price("assumed-local")
    # A month of the calculator has 730 hours, half an hour less than that of `break-even`.
    whole = monthly_owned(plan, 2).at(HOURS_PER_CALENDAR_MONTH)
    assert cost == pytest.approx(float(whole * 730 / HOURS_PER_CALENDAR_MONTH))
    assert "1 request a second, 24 hours a day" in texts[""]
    half = text_of(ask(site, f"{asked}&hours=12&weekly=33"))
    assert "Counted: the whole machine, in use 84 hours a week" in half
    part = text_of(ask(site, f"{asked}&hours=6&weekly=84"))
    assert "if the machine is in use 84 hours a week in all (owned machines)" in part


def test_an_owned_machine_is_in_use_while_it_trains(site: Site) -> None:
    """Many trainings a day on own machines use each of them for more hours than the reader says."""
    asked = "?model=net&software=onnxruntime&own=local&every=day&weekly=1"
    one, many = (text_of(ask(site, f"{asked}&runs={runs}")) for runs in (1, 1_000_000))
    hours = [
        re.search(r"if it is in use ([\d.]+) hours? a week in all\.", text) for text in (one, many)
    ]
    assert all(hours)
    rare, often = (float(found[1]) for found in hours if found)
    assert rare < 84 < often <= 168
    machines = re.search(r"It takes (\d+) machines in parallel", many)
    assert machines
    assert int(machines[1]) > 1


def test_what_a_list_lacks_is_named(site: Site) -> None:
    """A model, a job or a machine that the address names but no list has is refused beside it."""
    page = ask(site, "?model=nosuch&own=nosuch&a=nosuch&b=local")
    assert page.get_by_role("alert").all_inner_texts() == ["Ignored: not in this list."] * 3
    refused = ask(site, "?model=published/paper&job=serve").locator("label:has([role=alert])")
    assert refused.locator("select").evaluate_all("all => all.map(({ name }) => name)") == ["job"]


def test_an_own_machine_is_the_answer_beside_rented_ones(site: Site) -> None:
    """It costs what its owner paid, which may be nothing; the cheapest other machine follows."""
    asked = "?model=net&software=onnxruntime&prices=on-demand&own=local"
    whole = text_of(ask(site, asked))
    assert re.search(r"on This machine: .*, in .* The cheapest of the others: \$[\d.]+ on ", whole)
    assert "kept for 4 years and draws 10 W in use per vCPU" in whole
    free = ask(site, f"{asked}&purchase=0")
    # The reader's own price is not an assumption of the project.
    assert "price assumed" in whole
    assert "least of all compared machines" in text_of(ask(site, f"{asked}&a=box"))
    assert "price assumed" not in text_of(free)
    assert "depreciation" not in text_of(free)
    assert "energy, from declared power" in free.locator(".ec-calculated").text_content()
    assert "∞" not in text_of(ask(site, f"{asked}&purchase=0&electricity=0"))
    rows = free.locator(
        ".ec-calculated > div > .ec-frame tbody tr td:first-child"
    ).all_inner_texts()
    assert len(rows) > 1
    assert sum("This machine" in row for row in rows) == 1


def test_a_price_in_another_currency_is_not_compared(site: Site) -> None:
    """It is listed apart with the reason, and never wins by the size of its number."""
    plans = (site.folder / _PLANS).read_text("utf-8")
    euros, changed = re.subn(r'("crate":{.*?"currency":)"USD"', r'\1"EUR"', plans, count=1)
    assert changed == 1
    page = ask_with(site, _PLANS, euros, "?model=net&software=onnxruntime&prices=")
    assert "Crate" not in page.locator(".ec-calculated > div > .ec-frame").inner_text()
    apart = page.locator(".ec-calculated details", has_text="Not compared")
    assert "; price in EUR" in (apart.text_content() or "")


def test_a_batch_costs_what_the_command_line_says(site: Site) -> None:
    """One example, ten million, once and each month, and no length without tokens."""
    root = site.folder.parent
    inputs = read_inputs(load_catalogue(root), [root / "docs/data/results"], root / "docs")
    times = times_of(inputs, ["net"])
    for examples in (1, 10**7):
        query = f"?model=net&job=batch&examples={examples}&software=onnxruntime&prices=on-demand"
        page = ask(site, query)
        demand = Demand("net", "inference", NO_LIMITS, "onnxruntime", examples=Decimal(examples))
        cheapest = cheapest_answer(inputs.catalogue, times, demand).ordered[0]
        cells = page.locator("tbody td")
        assert number(cells, 1) == pytest.approx(float(cheapest.cost.mean))
        assert number(cells, 2) == pytest.approx(float(cheapest.seconds))
    assert page.locator("label:has([name=tokens])").is_hidden()
    page.locator("[name=every]").select_option("month")
    page.locator("[name=runs]").fill("2")
    wait_until(
        page, "document.querySelectorAll('.ec-calculated th')[1].textContent.includes('month')"
    )
    assert number(cells, 1) == pytest.approx(2 * float(cheapest.cost.mean))


def test_trainings_of_a_month_share_the_discount_for_its_use(site: Site) -> None:
    """A training costs less if others fill the month: the hours beyond a quarter cost 80 %."""
    costs, often = {}, 0
    for times in (1, 0):
        page = ask(site, f"?model=net&a=box&prices=on-demand&every=month&runs={times or often}")
        costs[times] = number(page.locator("tbody td"), 1)
        often = often or round(365 / (costs[1] / 0.80))
    assert costs[0] / often / costs[1] == pytest.approx(0.9, rel=1e-3)


def test_trainings_a_year_cost_a_years_sum(site: Site) -> None:
    """Each training costs as much as one alone, whose days have a discount for their use."""
    costs = {}
    for every, runs in (("once", 1), ("year", 2), ("year", 1)):
        query = f"?model=net&prices=on-demand&epochs=50000&every={every}&runs={runs}"
        page = ask(site, query)
        costs[every, runs] = [number(page.locator("tbody td"), at) for at in (1, 2)]
    total, each = costs["year", 2]
    assert each == pytest.approx(costs["once", 1][0])
    assert total == pytest.approx(2 * each)
    assert costs["year", 1] == pytest.approx(costs["once", 1])
    assert " a year on " in page.locator(".ec-verdict").inner_text()
    assert "50,000 epochs, once a year; prices: " in text_of(page)


def test_trainings_a_week_may_be_a_fraction(site: Site) -> None:
    """An average of 2.5 trainings a week costs a quarter more than two."""
    costs = {}
    for runs in (2, 2.5):
        page = ask(site, f"?model=net&prices=on-demand&every=week&runs={runs}")
        costs[runs] = number(page.locator("tbody td"), 1)
    assert costs[2.5] == pytest.approx(1.25 * costs[2])
    assert "2.5 times a week; prices: " in text_of(page)
    assert page.locator(".ec-fields :invalid").count() == 0


def test_paper_has_the_question_the_answer_the_bill_and_ten_rows(site: Site) -> None:
    """The form itself is left out."""
    page = ask(site, "?model=net&runs=3")
    assert "3 times" in page.locator(".ec-calculated p").first.inner_text()
    page.emulate_media(media="print")
    assert page.locator("[data-ec-calculator]").is_hidden()
    assert page.locator("details.ec-printed").is_visible()
    assert page.locator("table.ec-brief").count() > 0


def test_amounts_read_as_those_of_python(site: Site) -> None:
    """Equal digits from a billionth to a million, also of ties."""
    page = ask(site, "")
    for text in ("1e-10", "3.456e-6", "0.05", "0.0996", "0.125", "0.1245", "9.995", "99.5", "2e6"):
        shown = page.evaluate("size => epochcostShown.money(size, 'USD')", float(text))
        assert shown == amount_in_sentence(Decimal(text), "USD")


def test_two_machines_are_set_against_each_other(site: Site) -> None:
    """Cost and time, each with factor and both figures; one machine has no comparison."""
    page = ask(site, "?model=net&a=local&b=box")
    verdict = page.locator(".ec-verdict").inner_text()
    assert " times cheaper: $" in verdict
    assert " times faster: " in verdict
    assert verdict.count(" of 100 scenarios)") == 2
    assert "overlap" not in verdict
    assert page.locator(".ec-calculated tbody tr").count() == 2
    assert overflow(page) <= 0
    assert "two different machines" in text_of(ask(site, "?model=net&a=local&b=box&prices=spot"))
    same = ask(site, "?model=net&a=local&b=local").locator(".ec-verdict")
    assert "two different machines" in same.inner_text()


def test_the_bill_adds_up_to_the_verdict(site: Site) -> None:
    """The lines of one training, with the expected failures."""
    page = ask(site, "?model=net&failed=50")
    page.locator("summary", has_text="The bill").click()
    lines = page.locator("details[open] li").all_inner_texts()
    assert any(line.startswith("failed runs, expected: ") for line in lines)
    amounts = [float(line.rpartition("$")[2].replace(",", "")) for line in lines]
    assert sum(amounts) == pytest.approx(number(page.locator("tbody td"), 1), rel=0.05)
    page.locator("[name=runs]").fill("2")
    wait_until(page, "location.search.includes('runs=2')")
    assert page.locator("details.ec-printed[open]").count() == 1


def test_it_works_from_the_disk_and_says_what_it_needs(site: Site) -> None:
    """It computes without a server; without JavaScript it names the command."""
    page = site.tab()
    page.goto((site.folder / "calculator.html").as_uri() + "?runs=2")
    wait_until(page, _SETTLED)
    page.locator("[name=runs]").fill("3")
    wait_until(page, "location.search === '?job=train&model=net&runs=3'")
    plain = site.browser.new_context(java_script_enabled=False).new_page()
    plain.goto(site.address + "calculator.html")
    assert "epochcost cheapest" in plain.locator(".md-content noscript").inner_text()


def test_a_job_lists_only_models_that_have_times_for_it(site: Site) -> None:
    """The form keeps the job that the reader chooses; an address keeps its model."""
    page = ask(site, "?model=published/paper")
    job, model = page.locator("[name=job]"), page.locator("[name=model]")
    assert job.input_value() == "train"
    for name, listed in (("batch", ["net"]), ("train", ["net", "published/paper"])):
        job.select_option(name)
        wait_until(page, f"location.search.includes('job={name}') || !location.search")
        enabled = model.locator("option:enabled")
        assert enabled.evaluate_all("all => all.map(each => each.value)") == listed
        assert (job.input_value(), model.input_value()) == (name, "net")
    forced = ask(site, "?model=published/paper&job=serve")
    shown = [forced.locator(f"[name={name}]").input_value() for name in ("job", "model")]
    assert shown == ["train", "published/paper"]
