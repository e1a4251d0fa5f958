"""The answer on tokens: one list of machines and APIs, odds, and break-even loads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from analysis.test_tokens import project
from epochcost.analysis.inputs import Inputs, read_inputs
from epochcost.analysis.token_answers import TokenMarket, name_of, usual_answers
from epochcost.analysis.tokens import (
    MOST_BUSY,
    ApiOffer,
    Requests,
    ServingOffer,
    api_offers,
    ends_of_time,
)
from epochcost.cost.estimate import Time
from epochcost.errors import InputError
from epochcost.predict.decoders.rows import ServingQuestion
from epochcost.predict.joint import DRAWS, Draws, Forecast, standard_normals
from epochcost.specs.loader import load_catalogue
from tiny_project import price_text

CARD = """
id = "card"
name = "Card"
chip = "Card"
generation = "Ampere"
memory_gib = 16
memory_gb_per_second = 500
peak_fp32_tflops = 20
peak_fp16_tflops = 100
source = "made up for a test"
"""
BOX = """
id = "{name}"
name = "Box {name}"
provider = "Cloud"
vcpus = 8
source = "made up for a test"
accelerators = [{{ name = "Card", compute_capability = "8.0" }}]
"""
REQUESTS = Requests(Decimal("0.1"), 100, 50)


class Made:
    """Every phase of vLLM takes 10 ms, also on the box `quick`; draws differ by a tenth."""

    def forecasts(self, questions: Sequence[ServingQuestion]) -> list[Forecast]:
        """The same time for every question."""
        draws = Draws(0, (), 0.1 * standard_normals(1, 1)[:, 0])
        return [Forecast(0.01, 0.008, 0.0125, draws) for _ in questions]


@pytest.fixture(name="root")
def root_fixture(tmp_path: Path) -> Path:
    """A timed decoder and an API, and two boxes of two and four dollars an hour."""
    project(tmp_path)
    specs = tmp_path / "specs"
    decoder = specs / "models/tiny.toml"
    form = "hidden = 64\nparameters = 100_000\nvocabulary ="
    decoder.write_text(decoder.read_text().replace("vocabulary =", form))
    for folder in ("devices", "hardware", "prices"):
        (specs / folder).mkdir(exist_ok=True)
    (specs / "devices/card.toml").write_text(CARD)
    for name, amount in (("cheap", "2"), ("dear", "4")):
        (specs / f"hardware/{name}.toml").write_text(BOX.format(name=name))
        (specs / f"prices/{name}-11-01.toml").write_text(price_text(name, amount))
    return tmp_path


def inputs_of(root: Path) -> Inputs:
    """The inputs of a build."""
    return read_inputs(load_catalogue(root), [root / "docs/data/results"], root / "docs")


def test_machines_and_apis_stand_in_one_list(root: Path) -> None:
    """A dollar an hour is $18.52 a million tokens, at 0.1 requests a second of 150."""
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    costs = [
        (
            name_of(way),
            float(way.per_million if isinstance(way, ApiOffer) else way.per_million.mean),
        )
        for way in answer.ways
    ]
    million = 1e6 / (0.1 * 150 * 3600)
    assert [name for name, _ in costs] == [
        "They, tiny", "This machine: Some, 2 vCPUs", "Box cheap", "Box dear",
    ]  # fmt: skip
    assert [cost for _, cost in costs] == pytest.approx([2, million, 2 * million, 4 * million])
    measured, *predicted = answer.machines
    assert (measured.deployment.kind, measured.deployment.precision) == ("measured", "fp32")
    assert {offer.deployment.kind for offer in predicted} == {"predicted"}
    assert {offer.mark for offer in predicted} == {"predicted"}


def test_machines_and_apis_of_one_name_stay_apart(root: Path) -> None:
    """Machines with the same name have their ids in it; of APIs, the cheapest one counts."""
    for path in (root / "specs/hardware").glob("*.toml"):
        path.write_text(re.sub('"Box .*"', '"Box"', path.read_text()))
    api = root / "specs/apis/theirs.toml"
    dear = api.read_text().replace('id = "theirs"', 'id = "dear"')
    (root / "specs/apis/dear.toml").write_text(re.sub("(put_per_million) = .*", r"\1 = 99", dear))
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert [name_of(offer) for offer in answer.machines[1:]] == ["Box (cheap)", "Box (dear)"]
    assert len(answer.apis) == 2
    assert answer.chance(answer.apis[0]) == 1


def test_prices_in_another_currency_are_left_out_with_the_reason(root: Path) -> None:
    """A machine at a cent in euros is not cheaper than one at two dollars: no rate is known."""
    path = root / "specs/prices/cheap-11-01.toml"
    path.write_text(price_text("cheap", "0.01").replace("amount", 'currency = "EUR"\namount', 1))
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert "Box cheap" not in map(name_of, answer.ways)
    (refusal,) = (each for each in answer.refused if each.machine == "Box cheap")
    assert refusal.reason == (
        "its price is in EUR, others are in USD: convert the amounts, and name the rate and its "
        "date in the source"
    )


def test_apis_in_dollars_do_not_displace_machines_in_euros(root: Path) -> None:
    """Machines with prices in euros are compared, even if more APIs ask for dollars."""
    for path in (root / "specs/prices").glob("*.toml"):
        path.write_text(f'currency = "EUR"\n{path.read_text()}')
    (api,) = (root / "specs/apis").glob("*.toml")
    for number in range(4):
        more = api.read_text().replace('id = "theirs"', f'id = "more-{number}"')
        (root / f"specs/apis/more-{number}.toml").write_text(more)
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert {offer.price.currency for offer in answer.offers} == {"EUR"}
    assert not answer.apis
    assert "They, tiny" in {each.machine for each in answer.refused}


def test_the_cheapest_confirmed_price_may_be_another_plan(root: Path) -> None:
    """It may be a dearer plan of the cheapest machine."""
    for price in (root / "specs/prices").glob("*.toml"):
        price.write_text(f'unconfirmed = ["billing"]\n{price.read_text()}')
    assert TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS).confirmed is None
    text = price_text("cheap", "3").replace("cheap-11-01", "cheap-managed")
    managed = text.replace('"on-demand"', '"managed"')
    (root / "specs/prices/cheap-managed.toml").write_text(managed)
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert answer.confirmed is not None
    assert (name_of(answer.confirmed), answer.confirmed.hour) == ("Box cheap", 3)


def test_odds_count_the_draws_in_which_a_way_is_the_cheapest(root: Path) -> None:
    """A box at half the price wins against one with the same draws; slow draws need two.

    The API costs one and a half boxes.
    """
    inputs = inputs_of(root)
    market = TokenMarket(inputs, Made())
    box = next(way for way in market.answer("tiny", REQUESTS).machines if way.hour == 2)
    requests = replace(REQUESTS, per_second=Decimal("0.776") * box.capacity.per_second)
    alone = Decimal(2) / 3600 / requests.per_second * 1_000_000
    api = root / "specs/apis/theirs.toml"
    text = api.read_text().replace("input_per_million = 1", f"input_per_million = {alone / 100:f}")
    text = text.replace("output_per_million = 4", f"output_per_million = {alone / 100:f}")
    api.write_text(text)
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", requests)
    assert answer.odds is not None
    shares = answer.odds.shares
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["Box dear"] == 0
    assert 0.4 < shares["Box cheap"] < 0.7
    assert shares["They, tiny"] == pytest.approx(1 - shares["Box cheap"])
    assert answer.chance(answer.ways[0]) == answer.odds.wins


def test_the_load_from_which_a_machine_wins(root: Path) -> None:
    """The box's hour of two dollars over requests of 0.0003 dollars."""
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert answer.cheapest_api is not None
    assert answer.turn is not None
    rate, offer, _ = answer.turn
    assert float(rate) == pytest.approx(2 / 3600 / 0.0003)
    assert name_of(offer) == "Box cheap"
    busiest = answer.turn.busiest
    assert float(busiest.mean * MOST_BUSY) == pytest.approx(float(offer.full.mean))
    for api, comparison in (
        (busiest.mean, "costs about as much as"),
        (busiest.high, "probably costs less than"),
        (busiest.high * 2, "costs less than"),
    ):
        assert answer.turn._replace(api=api).comparison == comparison


def test_a_machine_that_saves_at_any_likely_speed_is_told_too(root: Path) -> None:
    """A box at twice the price and ten times the speed; alone if no other costs as little."""
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert answer.turn is not None
    (api,), slow = answer.apis, answer.turn.offer
    factor = Decimal("1.05") * slow.full.mean / MOST_BUSY / api.per_million
    dearer = {
        name: getattr(api.api, name) * factor
        for name in ("input_per_million", "output_per_million")
    }
    apis = tuple(api_offers([api.api.model_copy(update=dearer)], REQUESTS))
    request = Time(*(end / 10 for end in ends_of_time(slow.capacity.request)))
    fast = replace(
        slow,
        hour=2 * slow.hour,
        capacity=replace(slow.capacity, request=request),
        full=replace(slow.full, low=Decimal(0), mean=slow.full.mean / 5, high=slow.full.mean / 4),
        deployment=replace(
            slow.deployment, machine=replace(slow.deployment.machine, name="Box fast")
        ),
    )
    turns = replace(answer, apis=apis, offers=(slow, fast)).turns
    assert [name_of(turn.offer) for turn in turns] == ["Box cheap", "Box fast"]
    assert [turn.comparison for turn in turns] == ["costs about as much as", "costs less than"]
    (turn,) = replace(answer, apis=apis, offers=(fast,)).turns
    assert turn.saves


@pytest.mark.parametrize(
    ("old", "new", "reservation"),
    [
        ("as_of =", "valid_until = 2026-11-02\nas_of =", "no longer offered"),
        ("per_million = ", "per_million = 0.00000", "doubted, see `epochcost check`"),
    ],
    ids=["ended", "a millionth of the price"],
)
def test_an_api_with_a_drawback_is_no_answer(
    root: Path, old: str, new: str, reservation: str
) -> None:
    """It is last, with the reason, whatever it would save, and the next cheapest leads."""
    api = root / "specs/apis/theirs.toml"
    api.write_text(api.read_text().replace(old, new))
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS)
    assert answer.ways[-1].price.reservation == reservation
    assert answer.cheapest_api is None
    assert isinstance(answer.ways[0], ServingOffer)
    alone = answer.odds_of(answer.ways[-1:])
    assert alone is not None
    assert alone.shares == {"They, tiny": 1}


def test_a_cached_prompt_is_cheaper_where_it_has_a_price(root: Path) -> None:
    """Half of a prompt at a tenth of the price: 50 · 1 + 50 · 0.1 + 50 · 4 millionths."""
    api = root / "specs/apis/theirs.toml"
    api.write_text(f"{api.read_text()}cached_input_per_million = 0.1\n")
    cached = replace(REQUESTS, cached_share=Decimal("0.5"))
    answer = TokenMarket(inputs_of(root), Made()).answer("tiny", cached)
    assert float(answer.apis[0].per_million) == pytest.approx((50 + 5 + 200) / 150)


def test_in_few_bits_measured_phases_of_more_are_no_answer(root: Path) -> None:
    """In int4 only the boxes are listed, since our phases are fp32."""
    market = TokenMarket(inputs_of(root), Made())
    few = market.answer("tiny", REQUESTS, "int4")
    assert {offer.deployment.precision for offer in few.offers} == {"int4"}
    measured = market.answer("tiny", REQUESTS, software="ONNX Runtime")
    assert {offer.deployment.kind for offer in measured.offers} == {"measured"}
    assert "not measured" in {refusal.reason for refusal in measured.refused}


def test_a_measured_machine_is_refused_with_its_times(root: Path) -> None:
    """The refusal says whether the machine is too slow or was not timed at these lengths."""
    market = TokenMarket(inputs_of(root))
    asked = replace(REQUESTS, first_seconds=Decimal("0.4")), replace(REQUESTS, prompt=201)
    (slow,), (untimed,) = (market.answer("tiny", requests).refused for requests in asked)
    assert slow.reason == "too slow for the bounds"
    assert slow.detail == "first token 500 ms, each further 125 ms"
    assert untimed.reason == "not timed at these lengths"
    assert untimed.detail == "timed: prefill of 100 to 200 tokens; decode of 100 to 200 tokens"


def test_without_tables_of_tokens_nothing_is_predicted(root: Path) -> None:
    """Only the project's measurements and APIs are listed."""
    answer = TokenMarket(inputs_of(root)).answer("tiny", REQUESTS)
    assert {offer.deployment.kind for offer in answer.offers} == {"measured"}
    assert answer.refused == ()


def test_nothing_at_all_is_said_with_what_is_lacking(root: Path) -> None:
    """Without API, int8 measurement and suitable software, the error names all three."""
    (root / "specs/apis/theirs.toml").unlink()
    with pytest.raises(InputError, match=r"not served by llama.cpp in int8: 2 machines"):
        TokenMarket(inputs_of(root), Made()).answer("tiny", REQUESTS, "int8", "llama.cpp")


def test_another_column_of_a_table_is_other_evidence(own_inputs: Inputs) -> None:
    """Forecasts are not read from the cache if a table's spec states other values for its rows."""
    catalogue = own_inputs.catalogue
    name, table = next(item for item in catalogue.observations.items() if item[1].columns)
    edited = {**catalogue.observations, name: table.model_copy(update={"columns": {"x": "y"}})}
    changed = replace(own_inputs, catalogue=replace(catalogue, observations=edited))
    assert TokenMarket(own_inputs).evidence != TokenMarket(changed).evidence


def test_capacities_are_kept_for_the_next_question(
    own_inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another rate of requests of the same lengths needs no new forecast."""
    inputs, forecaster = replace(own_inputs, cache=tmp_path), TokenMarket(own_inputs).forecaster
    first = TokenMarket(inputs, forecaster).answer("llama-3.2-1b", Requests(Decimal(1), 200, 100))
    monkeypatch.setattr("epochcost.analysis.token_answers.predicted_capacities", None)
    second = TokenMarket(inputs).answer("llama-3.2-1b", Requests(Decimal(2), 200, 100))
    assert len(first.offers) == len(second.offers) > 100
    capacities = [
        {offer.price.id: offer.capacity for offer in each.offers} for each in (first, second)
    ]
    for plan, capacity in capacities[0].items():
        again = capacities[1][plan]
        assert capacity == again
        assert capacity.draws is not None
        assert again.draws is not None
        assert len(capacity.draws) == DRAWS
        assert np.array_equal(capacity.draws, again.draws)


def test_every_decoder_has_an_answer(own_inputs: Inputs) -> None:
    """A machine or an API serves each decoder of the catalogue."""
    names = {model.id for model in own_inputs.catalogue.models.values() if model.decoder}
    assert set(usual_answers(TokenMarket(own_inputs))) == names
