"""Prices that cannot be right: fifty planted slips, and each rule alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from epochcost.report.list_prices import list_prices
from epochcost.specs.api import ApiPrice
from epochcost.specs.catalogue import Catalogue, current_prices, usual_price
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price
from epochcost.specs.prices.api_table import api_doubts
from epochcost.specs.prices.doubts import hour_of, owned_doubts, rented_doubts

ROOT = Path(__file__).parents[3]
PriceT = TypeVar("PriceT", Price, ApiPrice)
Slip = tuple[Price | ApiPrice, ...]
# Months, days, minutes and seconds for hours; thousands and single tokens for millions.
RENTED_UNITS = (Decimal(730), Decimal(24), 1 / Decimal(60), 1 / Decimal(3600))
TOKEN_UNITS = (Decimal(1000), 1 / Decimal(1000), 1 / Decimal(10**6))


@pytest.fixture(name="catalogue", scope="module")
def catalogue_fixture() -> Catalogue:
    """The project's own catalogue."""
    return load_catalogue(ROOT)


def scaled(price: PriceT, factor: Decimal) -> PriceT:
    """The price with every amount multiplied by a factor."""
    keys = ("amount",) if isinstance(price, Price) else ("input_per_million", "output_per_million")
    return price.model_copy(update={key: getattr(price, key) * factor for key in keys})


class Slips:
    """Wrong versions of the catalogue's prices. The seed draws the prices."""

    def __init__(self, catalogue: Catalogue, seed: int) -> None:
        self._random = Random(seed)
        self._hardware = catalogue.hardware
        self._rented = [
            price for price in catalogue.prices.values() if price.amount and hour_of(price)
        ]
        self._apis = [api for api in catalogue.apis.values() if not api.doubt]

    def draw(self) -> Iterable[Slip]:
        """Yield one slip of each kind."""
        yield self._scaled(self._rented, RENTED_UNITS)
        yield self._scaled(self._apis, TOKEN_UNITS)
        factors = [Decimal(10) ** power for power in (-3, -2, -1, 1, 2, 3)]
        yield self._scaled(self._rented, factors)
        yield self._scaled(self._apis, factors)
        yield self._per_accelerator()
        yield self._region()
        yield self._swapped_plans()
        yield self._swapped_tokens()
        yield self._scaled(self._rented, (Decimal(100),))
        yield self._scaled(self._apis, (Decimal(100),))

    def _scaled(self, prices: list[PriceT], factors: Iterable[Decimal]) -> Slip:
        return (scaled(self._random.choice(prices), self._random.choice(tuple(factors))),)

    def _per_accelerator(self) -> Slip:
        counts = {
            name: sum(chip.count for chip in machine.accelerators)
            for name, machine in self._hardware.items()
        }
        price = self._random.choice([each for each in self._rented if counts[each.hardware] > 1])
        return (scaled(price, 1 / Decimal(counts[price.hardware])),)

    def _region(self) -> Slip:
        placed = [price for price in self._rented if price.region]
        price = self._random.choice(placed)
        others = [each.region for each in placed if each.provider != price.provider]
        return (price.model_copy(update={"region": self._random.choice(others)}),)

    def _swapped_plans(self) -> Slip:
        pairs = [
            (price, spot)
            for price in self._rented
            for spot in self._rented
            if (price.plan, spot.plan) == ("on-demand", "spot")
            and (price.hardware, price.as_of) == (spot.hardware, spot.as_of)
        ]
        price, spot = self._random.choice(pairs)
        update = {"amount": spot.amount}, {"amount": price.amount}
        return price.model_copy(update=update[0]), spot.model_copy(update=update[1])

    def _swapped_tokens(self) -> Slip:
        unequal = [api for api in self._apis if api.input_per_million != api.output_per_million]
        api = self._random.choice(unequal)
        swapped = {"input_per_million": api.output_per_million}
        return (api.model_copy(update=swapped | {"output_per_million": api.input_per_million}),)


def with_slip(catalogue: Catalogue, slip: Slip) -> Mapping[str, object]:
    """The doubts about a catalogue with a slip, by the price's id."""
    wrong = {price.id: price for price in slip}
    if isinstance(slip[0], ApiPrice):
        return api_doubts({**catalogue.apis, **wrong}.values())  # type: ignore[dict-item]
    return rented_doubts({**catalogue.prices, **wrong}.values(), catalogue.hardware)  # type: ignore[dict-item]


def test_slips_are_found(catalogue: Catalogue) -> None:
    """At least 45 of 50 slips are doubted, five of each of ten kinds."""
    slips = [slip for seed in range(5) for slip in Slips(catalogue, seed).draw()]
    found = [
        bool({price.id for price in slip} & with_slip(catalogue, slip).keys()) for slip in slips
    ]
    assert (len(found), sum(found)) >= (50, 45)


def test_sound_prices_are_not_doubted(catalogue: Catalogue) -> None:
    """At most one in a hundred of the catalogue's prices is doubted, and no rented one."""
    rented = rented_doubts(catalogue.prices.values(), catalogue.hardware)
    tokens = {name: doubt.message for name, doubt in api_doubts(catalogue.apis.values()).items()}
    assert not rented
    assert 100 * len(tokens) <= len(catalogue.prices) + len(catalogue.apis)
    assert tokens == {api.id: api.doubt for api in catalogue.apis.values() if api.doubt}


@pytest.mark.parametrize(
    ("factor", "narrower", "price"),
    [
        ("MOST_RISE", "2.14", "lambda-1x-a10-on-demand-2026-09"),
        ("MOST_FALL", "1.78", "p5.48xlarge-on-demand-2025-06"),
        ("MOST_WITHIN", "2.06", "nc4as-t4-v3-on-demand-2026-06"),
        ("MOST_ELSEWHERE", "4.5", "lambda-8x-v100-on-demand-2023-10"),
        ("MOST_OUTSIDE", "1.4", "nv36ads-a10-v5-on-demand-2026-06"),
    ],
)
def test_factors_follow_from_prices(
    catalogue: Catalogue,
    monkeypatch: pytest.MonkeyPatch,
    factor: str,
    narrower: str,
    price: str,
) -> None:
    """With a narrower factor, a correct price of the catalogue would be doubted."""
    monkeypatch.setattr(f"epochcost.specs.prices.doubts.{factor}", Decimal(narrower))
    assert price in rented_doubts(catalogue.prices.values(), catalogue.hardware)


def changed(catalogue: Catalogue, identifier: str, **update: object) -> dict[str, str]:
    """The doubts about the catalogue after a change of a price."""
    price = catalogue.price(identifier)
    doubts = with_slip(catalogue, (price.model_copy(update=update),))
    return {name: str(doubt) for name, doubt in doubts.items()}


def test_a_hundredth_is_doubted(catalogue: Catalogue) -> None:
    """The doubt about a hundredth of the amount names another price's amount."""
    name = "p5.48xlarge-on-demand-2026-07"
    doubts = changed(catalogue, name, amount=Decimal("0.5504"))
    assert doubts.keys() == {name}
    assert "1/100 of the 6.88 of p5.48xlarge-on-demand-2025-06" in doubts[name]


def test_a_commitment_above_on_demand_is_doubted(catalogue: Catalogue) -> None:
    """A commitment above on demand or a shorter term, and spot above on demand, are doubted."""
    name = "a2-highgpu-1g-committed-use-3y-2024-06"
    price = catalogue.price(name)
    assert price.commitment is not None
    dear = price.commitment.model_copy(update={"hourly": Decimal("3.8")})
    doubts = changed(catalogue, name, commitment=dear)
    assert doubts.keys() == {name}
    assert "times the 3.673 on-demand" in doubts[name]
    assert "times the 2.314 committed-use, 12 months" in doubts[name]
    spot = "n1-highcpu-16-spot-2024-06"
    assert spot in changed(catalogue, spot, amount=Decimal("0.6"))


@pytest.mark.parametrize(
    ("key", "wrong"), [("purchase", "140"), ("power_watts", "6"), ("electricity_per_kwh", "12")]
)
def test_an_owned_machine_in_the_wrong_unit_is_doubted(
    catalogue: Catalogue, key: str, wrong: str
) -> None:
    """Thousands of dollars, kilowatts and cents are doubted; no price of this repository is."""
    price = catalogue.price("assumed-server-8x-a100-80gb")
    assert price.owned is not None
    slip = price.owned.model_copy(update={key: Decimal(wrong)})
    (doubt,) = owned_doubts(
        price.model_copy(update={"owned": slip}), catalogue.machine(price.hardware)
    )
    assert doubt.key == ("owned", key)
    assert doubt.message.endswith("for this machine: compare the units") or "kilowatt" in str(doubt)
    assert not [
        doubt
        for price in catalogue.prices.values()
        for doubt in owned_doubts(price, catalogue.machine(price.hardware))
    ]


def test_two_prices_of_one_day_are_doubted(catalogue: Catalogue) -> None:
    """Two prices of the same plan on the same day are doubted, unless they are of two regions."""
    price = catalogue.price("g6.xlarge-on-demand-2026-07")
    again = price.model_copy(update={"id": "again"})
    doubts = rented_doubts((price, again), catalogue.hardware)
    assert doubts[price.id].message == "again states 0.8048 for the same day: delete one"
    assert doubts.keys() == {price.id, "again"}
    elsewhere = again.model_copy(update={"region": "eu-west-1"})
    assert not rented_doubts((price, elsewhere), catalogue.hardware)


def test_the_newer_of_two_prices_is_doubted(catalogue: Catalogue) -> None:
    """The newer price is doubted if both contradict equally many prices."""
    old = "g2.2xlarge-on-demand-2016-11"
    assert changed(catalogue, old, amount=Decimal("6.5")).keys() == {old}
    names = ("g2.2xlarge-on-demand-2016-11", "g2.2xlarge-on-demand-2026-07")
    alone = [catalogue.price(name) for name in names]
    alone[0] = scaled(alone[0], Decimal(3))
    assert rented_doubts(alone, catalogue.hardware).keys() == {names[1]}


def test_a_price_without_the_region_of_its_plan_is_doubted(catalogue: Catalogue) -> None:
    """A newer price without its plan's region is doubted, but an older price is not."""
    old = catalogue.price("g6.xlarge-on-demand-2026-07")
    for days, doubted in ((1, True), (-1, False)):
        day = old.as_of + timedelta(days=days)
        new = old.model_copy(update={"id": "new", "region": None, "sku": None, "as_of": day})
        doubts = rented_doubts((old, new), catalogue.hardware)
        assert list(doubts) == ["new"] * doubted
        assert not doubted or f"no price of us-east-1 ({old.id}): add the region" in str(
            doubts["new"]
        )


def test_judged_prices_alone_are_doubted(catalogue: Catalogue) -> None:
    """Only the prices that are judged are doubted. All others are taken as right."""
    old, new = "g2.2xlarge-on-demand-2016-11", "g2.2xlarge-on-demand-2026-07"
    prices = [scaled(catalogue.price(old), Decimal(9)), catalogue.price(new)]
    assert rented_doubts(prices, catalogue.hardware, {old}).keys() == {old}


def test_a_doubted_price_replaces_no_sound_one(catalogue: Catalogue) -> None:
    """A doubted price does not replace a sound one, and is in no list of prices."""
    names = "p5.48xlarge-on-demand-2025-06", "p5.48xlarge-on-demand-2026-07"
    sound, doubted = catalogue.price(names[0]), catalogue.price(names[1]).doubted("a test")
    assert current_prices([sound, doubted]) == (sound,)
    assert current_prices([doubted]) == (doubted,)
    assert doubted.reservation == "doubted, see `epochcost check`"
    alone = replace(catalogue, prices={doubted.id: doubted})
    assert list_prices(alone)["p5.48xlarge"].hour is None
    assert list_prices(catalogue)["p5.48xlarge"].hour == sound.amount


def test_an_ended_price_is_no_usual_price(catalogue: Catalogue) -> None:
    """A price whose last valid day is over is no list price, and gives way to an owned plan."""
    price = catalogue.price("p5.48xlarge-on-demand-2026-07")
    ended = price.model_copy(update={"valid_until": date(2026, 8, 1)})
    own = catalogue.price("assumed-server-8x-a100-80gb").model_copy(
        update={"hardware": price.hardware}
    )
    prices = replace(catalogue, prices={each.id: each for each in (ended, own)})
    assert list_prices(prices)[price.hardware].hour is None
    assert usual_price(prices, price.hardware) is own
    assert usual_price(catalogue, price.hardware) == catalogue.price(
        "p5.48xlarge-on-demand-2026-11"
    )


def test_an_hour_has_its_premiums_and_upfront_payments(catalogue: Catalogue) -> None:
    """The price of an hour includes premiums and upfront payments. Assumed prices have none."""
    assert hour_of(catalogue.price("n1-highcpu-16-spot-2017-07")) == Decimal("0.127284")
    price = catalogue.price("a2-highgpu-1g-committed-use-1y-2024-06")
    assert price.commitment is not None
    paid = {"payment": "partial-upfront", "upfront": Decimal(8760), "hourly": Decimal("0.5")}
    upfront = price.model_copy(update={"commitment": price.commitment.model_copy(update=paid)})
    assert hour_of(upfront) == Decimal("1.5")
    assert hour_of(catalogue.price("assumed-local")) is None
