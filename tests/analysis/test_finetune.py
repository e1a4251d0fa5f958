"""Answers on fine-tuning over the project's machines and prices."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from epochcost.analysis.finetune import TrainingDemand, TuningMarket, by_hardware
from epochcost.analysis.inputs import read_inputs
from epochcost.cost.bill import quote
from epochcost.cost.compare import Limits
from epochcost.cost.lines import Usage
from epochcost.errors import InputError
from epochcost.specs.loader import load_catalogue

ROOT = Path(__file__).parents[2]
LORA = TrainingDemand("llama-3.1-8b", "lora", Decimal(10_000 * 512 * 3), 512)


@pytest.fixture(scope="module")
def market() -> TuningMarket:
    """The project without results."""
    return TuningMarket(read_inputs(load_catalogue(ROOT), [], ROOT / "docs"))


def test_every_offer_fits_and_is_billed_for_its_time(market: TuningMarket) -> None:
    """LoRA of 8B: memory within the device's, the bill of tokens over tokens a second."""
    answer = market.answer(LORA)
    assert len(by_hardware(answer.offers)) > 40
    for offer in answer.offers:
        way = offer.key.way
        assert way.needed_bytes <= way.available_bytes
        assert float(way.time.mean) == pytest.approx(15_360_000 * way.forecast.seconds)
    way, price = answer.choice.key.way, answer.choice.key.price
    bill = quote(price, Usage(way.time.mean, 1, way.hardware.vcpus, True), credited=False)
    assert answer.choice.cost.mean == bill.total


def test_cheapest_leads_and_odds_add_up(market: TuningMarket) -> None:
    """The choice is the lowest cost without a reservation, and odds of machines sum to one."""
    answer = market.answer(LORA)
    free = [offer for offer in answer.offers if not offer.key.price.reservation]
    assert answer.choice is free[0]
    assert answer.choice.cost.mean == min(offer.cost.mean for offer in free)
    assert sum(answer.odds.shares.values()) == pytest.approx(1)
    assert answer.odds.wins > 0.3


def test_machines_that_cannot_say_why(market: TuningMarket) -> None:
    """A T4 is too small for LoRA of 8B in 16 bits and large enough for 4 bits."""
    refused = {each.machine: each for each in market.answer(LORA).refused}
    small = refused["EC2 g4dn.xlarge (Tesla T4)"]
    untried = "8-bit optimizers and offloading to host memory are not considered"
    assert small.reason == f"too little memory ({untried})"
    assert small.detail == "needs 18.0 GiB on its device, which has 15.0 GiB"
    assert refused["EC2 c7i.48xlarge"].reason == "no accelerator"
    assert refused["Google Cloud ML Engine BASIC"].reason == "no accelerator"
    quantised = market.answer(replace(LORA, method="qlora"))
    assert "g4dn.xlarge" in {offer.key.way.hardware.id for offer in quantised.offers}


def test_machines_that_take_a_century_are_refused(market: TuningMarket) -> None:
    """Every machine of a huge training has an offer or a reason; slow ones name the century."""
    total = Decimal(10) ** 14
    answer = market.answer(replace(LORA, total=total))
    slow = {each.machine for each in answer.refused if "more than 100 years" in each.reason}
    offered = {offer.key.way.hardware.name for offer in answer.offers}
    quick = market.answer(LORA)
    assert slow
    assert offered
    assert not slow & offered
    assert {offer.key.way.hardware.name for offer in quick.offers} == slow | offered


def test_a_price_in_another_currency_is_a_reason(market: TuningMarket) -> None:
    """A machine whose prices are in euros is named as left out, with the reason."""
    catalogue = load_catalogue(ROOT)
    first = market.answer(LORA).choice.key.way.hardware
    prices = {
        name: price.model_copy(update={"currency": "EUR"}) if price.hardware == first.id else price
        for name, price in catalogue.prices.items()
    }
    inputs = read_inputs(replace(catalogue, prices=prices), [], ROOT / "docs")
    answer = TuningMarket(inputs).answer(LORA)
    assert answer.choice.key.way.hardware.id != first.id
    (refusal,) = (each for each in answer.refused if each.machine == first.name)
    assert refusal.reason.startswith("its price is in EUR, others are in USD: convert the amounts")


def test_published_lora_lies_in_the_range(market: TuningMarket) -> None:
    """VectorLM's rows of Llama 3 8B are listed with one A100 of 80 GB, within its range."""
    answer = market.answer(replace(LORA, length=2048))
    way = next(o.key.way for o in answer.offers if o.key.way.hardware.id == "a2-ultragpu-1g")
    rates = [row.tokens_per_second or 0 for row in answer.published_on(way)]
    assert max(rates) == pytest.approx(4079.28)
    assert way.forecast.low < 1 / 4079.28 < way.forecast.high
    assert answer.extrapolates(way) == ""
    lonely = next(o.key.way for o in answer.offers if o.key.way.hardware.id == "lambda-1x-gh200")
    assert answer.extrapolates(lonely) == "GH200"


@pytest.mark.parametrize(
    ("model", "machines", "rate"),
    [("deepseek-v3", 128, 865), ("deepseek-v3", 32, 1002), ("gpt-oss-120b", 8, 7626)],
)
def test_published_trainings_of_mixtures_lie_in_the_range(
    market: TuningMarket, model: str, machines: int, rate: float
) -> None:
    """Experts stay on their H100 SXM: tokens a second of a GPU are near the published ones."""
    # NVIDIA-NeMo/Automodel@01926a5c44: docs/performance-summary.md
    answer = market.answer(
        TrainingDemand(model, "pretraining", Decimal(10**12), 4096, machines=machines)
    )
    way = next(o.key.way for o in answer.offers if o.key.way.hardware.id == "p5.48xlarge")
    seconds = 1 / (rate * way.setting.count)
    assert way.forecast.low < seconds < way.forecast.high
    assert way.forecast.seconds < 1.75 * seconds


def test_machines_exchange_weights_over_a_network(market: TuningMarket) -> None:
    """Full training on 64 machines takes as long as a slow network needs for the weights."""
    full = TrainingDemand("llama-3.1-8b", "full", Decimal(10**9), 2048, machines=64)
    ways = {offer.key.way.hardware.id: offer.key.way for offer in market.answer(full).offers}
    slow, fast = ways["g6.xlarge"], ways["p5.48xlarge"]
    assert (slow.setting.network, fast.setting.network) == (1.25e9, 400e9)
    sent = 3 * 2 * 8.03e9 * 1e9 / slow.setting.tokens / 64
    assert float(slow.time.mean) > sent / 1.25e9
    assert float(fast.time.mean) < 600
    alone = market.answer(replace(full, machines=1)).choice.key.way
    assert alone.setting.network is None


def test_a_small_training_has_small_steps(market: TuningMarket) -> None:
    """No device processes more sequences at once than its part of three or four examples.

    On eight devices, a step of eight sequences takes as long as one of three.
    """
    answer = market.answer(replace(LORA, total=Decimal(3 * 64), length=64))
    for way in (offer.key.way for offer in answer.offers):
        assert way.setting.tokens <= 64 * max(4 // way.setting.count, 1)
        step = way.setting.tokens * way.setting.count * way.forecast.seconds
        assert float(way.time.mean) >= step * (1 - 1e-9)


def test_more_tokens_never_take_less_time(market: TuningMarket) -> None:
    """A device may take two sequences at once if its part is one and a half."""
    few = replace(LORA, method="full", model="mistral-7b", length=1024, machines=4)
    times = [
        market.seconds(replace(few, total=Decimal(1024 * examples))) for examples in range(4, 40, 3)
    ]
    for less, more in pairwise(times):
        assert all(less[machine] <= seconds * Decimal("1.01") for machine, seconds in more.items())


def test_full_training_of_70b_needs_large_machines(market: TuningMarket) -> None:
    """16 bytes for each of 70.6 billion parameters fit eight B200, or two machines of H200."""
    full = TrainingDemand("llama-3.3-70b", "full", Decimal(10**7), 512)
    alone = {offer.key.way.setting.device.id for offer in market.answer(full).offers}
    paired = {
        offer.key.way.setting.device.id for offer in market.answer(replace(full, machines=2)).offers
    }
    assert alone == {"b200", "b300"}
    assert "h200-sxm" in paired


def test_limits_choose(market: TuningMarket) -> None:
    """A deadline takes a faster machine, a budget alone the fastest within it.

    The odds compare the choice with the machines within the deadline only.
    """
    usual = market.answer(LORA).choice
    hurried = market.answer(replace(LORA, limits=Limits(Decimal(300))))
    richest = market.answer(replace(LORA, limits=Limits(budget=Decimal(2)))).choice
    assert hurried.choice.seconds <= 300 < usual.seconds
    late = {offer.key.way.hardware.id for offer in hurried.offers if offer.seconds > 300}
    assert late
    assert late.isdisjoint(hurried.odds.shares)
    assert hurried.odds.wins == max(hurried.odds.shares.values())
    assert richest.cost.mean <= 2
    assert richest.seconds < usual.seconds


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "resnet50"}, "expected a model that generates tokens"),
        ({"length": 131_073}, "--tokens 131073: expected at most 131072, the context"),
        (
            {"model": "llama-3.1-405b", "method": "full"},
            "the nearest is .*: needs .* GiB on each of 8 devices, .*--method lora.*; 8-bit opt",
        ),
        ({"machines": 30_001}, "--machines 30001: expected at most 30000, one for each sequence"),
        (
            {"total": Decimal(1331), "machines": 3},
            "--machines 3: expected at most 2, one for each sequence",
        ),
        ({"limits": Limits(Decimal(1))}, "within the limits, found none: nearest is"),
        ({"limits": Limits(budget=Decimal(1), currency="EUR")}, "budget: expected USD"),
    ],
)
def test_refusals(market: TuningMarket, changes: dict[str, object], message: str) -> None:
    """The one-line error suggests a remedy."""
    with pytest.raises(InputError, match=message) as refused:
        market.answer(replace(LORA, **changes))  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
