"""Find token prices that cannot be right, each with the reason.

An API's price is compared with its last price, the same model at other providers, and the
provider's other models. Two prices may differ by at most a fixed factor: the largest factor among
the prices in this repository in November 2026, rounded up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from statistics import median

from epochcost.specs.api import ApiPrice
from epochcost.specs.prices.doubts import FEWEST_OTHERS, short

# Least and most of a price as a share of the input's. Output: 1 to 10 (gpt-oss-120b at io.net).
# Cached input: from 0.0083 (DeepSeek V4 Pro). Kept prompts: 1 to 2.5 (MiniMax M2.5 at DeepInfra).
SHARES = (
    ("output_per_million", "output", Decimal(1), Decimal(12)),
    ("cached_input_per_million", "cached input", Decimal("0.005"), Decimal(1)),
    ("cache_write_per_million", "kept input", Decimal("0.5"), Decimal("2.5")),
)
# Input and output, from the median of the same model at two or more other providers. Widest of the
# sound ones: 6.66 (DeepSeek V3 at Hyperbolic).
MOST_FROM_MEDIAN = Decimal(7)
# Outside the range of the provider's other models, or of all. Widest: 2.44 (GLM 4.6 at Cerebras).
MOST_OUTSIDE = Decimal("2.5")
# Input and output of the cheapest and the dearest of 418 prices, for a catalogue with few of them.
_USUAL = Decimal("0.04"), Decimal(60)
# From one price to the next: 88 % of 1,904 changes in the history of models.dev are below; among
# the others are prices of a token or of a thousand.
MOST_CHANGE = Decimal(5)


def api_doubts(apis: Iterable[ApiPrice]) -> dict[str, str]:
    """The reason for each API whose price cannot be right, by the API's id."""
    market = ApiMarket(apis)
    reasons = {api.id: "; ".join(market.reasons(api)) for api in market.apis}
    return {name: reason for name, reason in reasons.items() if reason}


def change_doubts(before: ApiPrice, after: ApiPrice) -> Iterator[str]:
    """Reasons why an API's new price cannot be right, compared with its last price."""
    last, now = _total(before), _total(after)
    if last and now and not 1 / MOST_CHANGE < now / last < MOST_CHANGE:
        times = f"{short(now / last)} times its last {short(last)}"
        yield f"{short(now)} for input and output is {times}"


class ApiMarket:
    """The prices with which an API's price is compared."""

    def __init__(self, apis: Iterable[ApiPrice]) -> None:
        self.apis = tuple(apis)
        self._alike: dict[tuple[str, str], list[ApiPrice]] = defaultdict(list)
        for api in self.apis:
            if _total(api):
                self._alike[_model(api), api.currency].append(api)
                self._alike[api.provider, api.currency].append(api)
                self._alike["", api.currency].append(api)

    def reasons(self, api: ApiPrice) -> Iterator[str]:
        """Reasons why the price of an API cannot be right; none if it can."""
        yield from _share_reasons(api)
        total = _total(api)
        elsewhere = [
            _total(peer)
            for peer in self._alike[_model(api), api.currency]
            if peer.provider != api.provider
        ]
        if total and len(elsewhere) > 1:
            usual = median(elsewhere)
            if not 1 / MOST_FROM_MEDIAN < total / usual < MOST_FROM_MEDIAN:
                yield (
                    f"{short(total)} for input and output is {short(total / usual)} times the "
                    f"{short(usual)} of the same model elsewhere"
                )
        elif total:
            yield from self._from_others(api, total)

    def _from_others(self, api: ApiPrice, total: Decimal) -> Iterator[str]:
        peers, group = self._peer_totals(api, api.provider), f"{api.provider}'s other"
        if len(peers) < FEWEST_OTHERS:
            usual = _USUAL if api.currency == "USD" else ()
            peers, group = (*self._peer_totals(api, ""), *usual), "all"
        if peers and not (min(peers) / MOST_OUTSIDE < total < max(peers) * MOST_OUTSIDE):
            yield (
                f"{short(total)} for input and output; {group} models cost {short(min(peers))} "
                f"to {short(max(peers))}"
            )

    def _peer_totals(self, api: ApiPrice, group: str) -> tuple[Decimal, ...]:
        alike = self._alike[group, api.currency]
        return tuple(_total(peer) for peer in alike if peer.id != api.id)


def _total(api: ApiPrice) -> Decimal:
    return api.input_per_million + api.output_per_million


def _model(api: ApiPrice) -> str:
    return f"model {api.model or api.name.lower().rpartition('/')[2]}"


def _share_reasons(api: ApiPrice) -> Iterator[str]:
    for key, label, least, most in SHARES:
        price = getattr(api, key)
        if api.input_per_million and price:
            share = price / api.input_per_million
            if not least <= share <= most:
                yield f"{label} is {short(share)} times the input"
