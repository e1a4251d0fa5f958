"""Requests computed from phases: hand-computed sums, bounds, and missing answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.observations import observe
from epochcost.analysis.phases import TimedDecoder, timed_decoders
from epochcost.analysis.tokens import (
    Deployment,
    Requests,
    ServingOffer,
    api_offers,
    break_even_per_second,
    capacities,
    hour_of,
    priced_offers,
)
from epochcost.cost.bill import quote
from epochcost.cost.break_even import monthly_owned
from epochcost.cost.estimate import Time
from epochcost.cost.lines import Usage
from epochcost.cost.owned import HOURS_PER_CALENDAR_MONTH
from epochcost.plan.work import Phase
from epochcost.results.records import Result
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from price_plans import owned
from report_project import make_result, store_results
from tiny_decoders import DECODER_SPEC
from tiny_project import price_text, write_tiny_project

API = """
id = "theirs"
name = "tiny"
provider = "They"
model = "tiny"
input_per_million = 1
output_per_million = 4
as_of = 2026-11-01
source = "a test"
"""
# Mean time of a run, by phase, tokens and sequences.
TIMES = {
    ("prefill", 100, 1): 0.5,
    ("prefill", 200, 1): 1.5,
    ("decode", 100, 1): 0.1,
    ("decode", 200, 1): 0.2,
    ("decode", 100, 4): 0.2,
    ("decode", 200, 4): 0.4,
}


def phase_result(name: str, tokens: int, sequences: int, seconds: float) -> Result:
    """A stored phase whose runs all took this long."""
    return make_result(
        mode="inference",
        model="tiny",
        batch_size=sequences,
        samples=[seconds] * 12,
        phase=Phase(name=name, tokens=tokens),
    )


def project(root: Path) -> Catalogue:
    """A decoder with timed phases on a machine of a dollar an hour, and an API."""
    write_tiny_project(root)
    files = {
        "models/tiny": DECODER_SPEC,
        "prices/list": price_text("local", "1"),
        "apis/theirs": API,
    }
    for name, text in files.items():
        path = root / "specs" / f"{name}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    results = [phase_result(*key, seconds) for key, seconds in TIMES.items()]
    store_results(root, results)
    return load_catalogue(root)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    """The project's catalogue."""
    return project(tmp_path_factory.mktemp("tokens"))


@pytest.fixture(scope="module")
def decoder(catalogue: Catalogue) -> TimedDecoder:
    """The times of its decoder."""
    folder = catalogue.root / "docs" / "data" / "results"
    inputs = read_inputs(catalogue, [folder], catalogue.root / "docs")
    assert not inputs.problems
    (decoder,) = timed_decoders(inputs)
    assert [row for row in observe(inputs) if row.kind == "measured"] == []
    return decoder


def test_times_lie_on_lines_between_what_was_timed(decoder: TimedDecoder) -> None:
    """150 tokens take the mean of the times of 100 and 200; beyond there is no time."""
    prefill, decode = decoder.time("prefill", 150, 1), decoder.time("decode", 125, 4)
    assert prefill is not None
    assert float(prefill.mean) == pytest.approx(1.0)
    assert decode is not None
    assert float(decode.mean) == pytest.approx(0.25)
    assert decoder.time("prefill", 99, 1) is None
    assert decoder.time("decode", 201, 1) is None
    assert decoder.time("decode", 150, 2) is None


def test_a_request_is_its_prompt_and_its_share_of_the_tokens(decoder: TimedDecoder) -> None:
    """100 tokens read in 0.5 s, 50 generated at 125 a second, one by one or four at once.

    A token of one of four waits for the three other prompts once in 50 tokens.
    """
    single, four = capacities(decoder, Requests(Decimal("0.1"), 100, 50))
    assert float(single.request.mean) == pytest.approx(0.5 + 50 * 0.125)
    assert float(single.token.mean) == pytest.approx(0.125)
    assert float(four.request.mean) == pytest.approx(0.5 + 50 * 0.25 / 4)
    assert float(four.token.mean) == pytest.approx(0.25 + 3 * 0.5 / 50)
    assert float(four.first.mean) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("bounds", "sequences"),
    [((None, None), 4), ((None, Decimal("0.2")), 1), ((None, Decimal("0.1")), None),
     ((Decimal("0.4"), None), None)],
)  # fmt: skip
def test_bounds_choose_how_many_are_in_work(
    decoder: TimedDecoder, bounds: tuple[Decimal | None, Decimal | None], sequences: int | None
) -> None:
    """More sequences at once are cheaper and slower; impossible bounds have no answer."""
    requests = Requests(Decimal("0.1"), 100, 50, *bounds)
    sufficient = [each for each in capacities(decoder, requests) if each.keeps(requests)]
    assert max((each.sequences for each in sufficient), default=None) == sequences


def offers_of(
    catalogue: Catalogue, decoders: Iterable[TimedDecoder], requests: Requests
) -> tuple[ServingOffer, ...]:
    """Every timed decoder within the bounds, at its most requests a second, under every plan."""
    within = []
    for timed in decoders:
        sufficient = [each for each in capacities(timed, requests) if each.keeps(requests)]
        if sufficient:
            deployment = Deployment(timed.machine, timed.precision, timed.software)
            within.append((deployment, max(sufficient, key=lambda each: each.per_second)))
    return priced_offers(catalogue, within, requests)


def test_a_machine_that_idles_costs_its_hour(catalogue: Catalogue, decoder: TimedDecoder) -> None:
    """At a dollar an hour: 3.625 s for 150 tokens, and a request every ten seconds."""
    (offer,) = offers_of(catalogue, [decoder], Requests(Decimal("0.1"), 100, 50))
    assert float(offer.full.mean) == pytest.approx(3.625 / 150 / 3600 * 1e6)
    assert float(offer.per_million.mean) == pytest.approx(10 / 150 / 3600 * 1e6)
    assert float(offer.busy) == pytest.approx(0.3625)
    assert offer.machines == 1


def test_machines_are_counted_at_each_end_of_a_time(
    catalogue: Catalogue, decoder: TimedDecoder
) -> None:
    """Requests of 1 to 9 s, 0.3 a second, need 1 to 4 machines, each at most 80 % busy."""
    requests = Requests(Decimal("0.3"), 100, 50)
    (capacity, *_) = capacities(decoder, requests)
    spread = replace(capacity, request=Time(Decimal(1), Decimal(3), Decimal(9)))
    deployment = Deployment(decoder.machine, decoder.precision, decoder.software)
    (offer,) = priced_offers(catalogue, [(deployment, spread)], requests)
    assert (offer.machines, offer.busy) == (2, Decimal("0.45"))
    million = 1e6 / 150 / 3600
    for cost, machines in ((offer.per_million, (1, 2, 4)), (offer.full, (0.3, 0.9, 2.7))):
        ends = [number / 0.3 * million for number in machines]
        assert [float(end) for end in (cost.low, cost.mean, cost.high)] == pytest.approx(ends)


def test_an_api_is_cheaper_below_some_rate(catalogue: Catalogue, decoder: TimedDecoder) -> None:
    """A request costs 100 · 1 + 50 · 4 millionths: 0.0003 USD; an hour costs 1 USD."""
    api = catalogue.apis["theirs"]
    requests = Requests(Decimal("0.1"), 100, 50)
    (offer,) = offers_of(catalogue, [decoder], requests)
    assert [offer.per_million for offer in api_offers([api], requests)] == [2]
    # 1 / 3600 / 0.0003 = 0.926 a second, more than the machine's 0.276.
    assert break_even_per_second(offer, api, requests) is None
    dear = api.model_copy(update={"output_per_million": Decimal(100)})
    rate = break_even_per_second(offer, dear, requests)
    assert rate is not None
    assert float(rate) == pytest.approx(1 / 3600 / 0.0051)
    # A batch costs half, so that the machine needs twice the load.
    halved = dear.model_copy(update={"batch_percent": Decimal(50)})
    doubled = break_even_per_second(offer, halved, replace(requests, batch=True))
    assert doubled == 2 * rate
    for update in ({"currency": "EUR"}, {"input_per_million": 0, "output_per_million": 0}):
        assert break_even_per_second(offer, dear.model_copy(update=update), requests) is None


def test_an_owned_machine_that_serves_costs_its_month(
    catalogue: Catalogue, decoder: TimedDecoder
) -> None:
    """At any utilisation and load it costs what ``break_even`` and ``quote`` bill a month."""
    price = owned("10", "0.5", idle_watts="4")
    full, month = owned("10", "1", idle_watts="4"), HOURS_PER_CALENDAR_MONTH
    hour = hour_of(decoder.machine, price)
    assert hour is not None
    assert float(hour * month) == pytest.approx(float(monthly_owned(price).at(month)))
    assert float(hour * month) == pytest.approx(float(quote(full, Usage(month * 3600)).total))
    requests = Requests(Decimal("0.1"), 100, 50)
    (capacity, *_) = capacities(decoder, requests)
    deployment = Deployment(decoder.machine, decoder.precision, decoder.software)
    mine = replace(catalogue, prices={price.id: price})
    (offer,) = priced_offers(mine, [(deployment, capacity)], requests)
    # A month of `tokens` has 730 hours.
    bill = quote(full, Usage(Decimal(730 * 3600))).total
    assert float(offer.per_million.mean * requests.millions_a_month) == pytest.approx(float(bill))
    busy = capacity.request.mean / 150 * 1_000_000
    assert float(offer.full.mean) == pytest.approx(float(quote(full, Usage(busy)).total))
