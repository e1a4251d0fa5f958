"""Prices of tokens that cannot be right, by each rule alone."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from epochcost.specs.api import ApiPrice
from epochcost.specs.prices.api_table import api_doubts, change_doubts


def api(prompt: str, output: str, provider: str = "They", **others: object) -> ApiPrice:
    """A price of input and output tokens."""
    return ApiPrice.model_validate(
        {
            "id": f"{provider.lower()}-{others.get('name', 'tiny')}",
            "name": "tiny",
            "provider": provider,
            "input_per_million": Decimal(prompt),
            "output_per_million": Decimal(output),
            "as_of": dt.date(2026, 7, 2),
            "source": "made up for a test",
            **others,
        }
    )


@pytest.mark.parametrize(
    ("price", "reason"),
    [
        (api("15000", "75000"), "output_per_million: input plus output is 90000; all models"),
        (api("0.000001", "0.000003"), "output_per_million: input plus output is 0.000004; all "),
        (api("900", "75"), "input_per_million: input plus output is 975; all models cost 0.04 to"),
        (api("2", "0.5"), "output_per_million: output is 0.25 times the input"),
        (api("2", "30"), "output_per_million: output is 15 times the input"),
        (
            api("2", "6", cached_input_per_million=Decimal("0.002")),
            "cached_input_per_million: cached input is 0.001 times the input",
        ),
    ],
)
def test_a_price_alone(price: ApiPrice, reason: str) -> None:
    """A price is doubted by its own figures and by the range of all prices, at the doubted key."""
    assert str(api_doubts([price])[price.id]).startswith(reason)


def test_sound_prices() -> None:
    """A free price and a price in another currency are not doubted."""
    assert not api_doubts([api("0", "0"), api("2", "6", "You"), api("900", "900", currency="JPY")])


def test_the_same_model_elsewhere() -> None:
    """A price far from two other providers' prices is doubted, but not if there is only one."""
    prices = [api("1", "3", "A"), api("1.2", "3", "B"), api("12", "30", "C")]
    ((name, doubt),) = api_doubts(prices).items()
    message = "input plus output is 42, 10.24 times the 4.1 of the same model elsewhere"
    assert (name, doubt.message) == ("c-tiny", message)
    assert not api_doubts(prices[1:])


def test_other_models_of_the_provider() -> None:
    """A model of one provider only is compared with the provider's other models."""
    others = [api("1", "3", name=f"model-{number}") for number in range(3)]
    (doubt,) = api_doubts([*others, api("3", "9", name="large")]).values()
    assert doubt.message == "input plus output is 12; They's other models cost 4 to 4"


def test_its_own_last_price() -> None:
    """A change by a factor of five or more is doubted, unless the old price was free."""
    (reason,) = change_doubts(api("1", "3"), api("0.1", "0.3"))
    assert reason == "input plus output is 0.4, 0.1 times its last 4"
    assert not [*change_doubts(api("1", "3"), api("4", "12"))]
    assert not [*change_doubts(api("0", "0"), api("4", "12"))]
