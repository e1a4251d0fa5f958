"""What `epochcost tokens` says of decoders that were asked behind an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

from epochcost.analysis.served_tokens import Percent, ServedDecoder, ServedRate
from epochcost.cli.terminal import print_table, say
from epochcost.cost import Estimate
from epochcost.specs.requests import Requests
from epochcost.units import money, seconds

_HEADER = (
    "requests", "first token", "90 % below", "further, 90 % below", "in time", "written",
    "a million tokens", "measured for",
)  # fmt: skip
_DROP = ("measured for", "written", "first token", "in time")


def show_served(served: Sequence[ServedDecoder], per_second: Decimal, *, wide: bool) -> None:
    """Of each what to expect at the rate that is asked, and a table of the rates measured."""
    for (software, asked), group in groupby(served, lambda one: (one.software, one.asked)):
        say(f"Behind {software}, measured with {asked.lengths_words}:")
        for one in group:
            told = "; ".join((_expected(one, per_second), *_beside(one)))
            say(f"{one.machine.name}, {one.precision}: {told}")
            if rows := [_row(one, rate) for rate in one.rates]:
                print_table(_HEADER, rows, drop=_DROP, wide=wide)


def _row(one: ServedDecoder, rate: ServedRate) -> tuple[str, ...]:
    cost = one.per_million(rate)
    return (
        f"{float(rate.per_second):.3g}/s",
        _time(rate.first_seconds(50)),
        _time(rate.first_seconds(90)),
        _time(rate.further_seconds(90)),
        "-" if rate.good_share is None else f"{rate.good_share:.0%}",
        f"{rate.written_per_second:.3g}/s",
        money(cost.mean, cost.currency) if isinstance(cost, Estimate) else "no price",
        seconds(rate.seconds),
    )


def _time(found: float | None) -> str:
    return "-" if found is None else seconds(found)


def _expected(one: ServedDecoder, per_second: Decimal) -> str:
    """What a machine does at the asked rate, by what was measured below and above it."""
    if one.highest is None:
        return f"no rate keeps {_bounds(one.asked)}"
    most = f"one machine keeps {_bounds(one.asked)} up to {float(one.highest.per_second):.3g}/s"
    first = one.first_seconds(per_second, one.asked.percentile)
    further = one.further_seconds(per_second, one.asked.percentile)
    if first is None or further is None:
        return most
    share = f"{one.asked.percentile} %"
    return (
        f"{most}; at {float(per_second):.3g}/s {share} of first tokens come within "
        f"{seconds(first)} and of further ones within {seconds(further)}"
    )


def _beside(one: ServedDecoder) -> Iterator[str]:
    if one.start_seconds is not None:
        yield f"the engine takes requests {seconds(one.start_seconds)} after its start"
    if one.joules_per_token is not None:
        yield f"{one.joules_per_token:.3g} J a token by {one.meters}"


def _bounds(asked: Requests) -> str:
    first, further = (seconds(bound / 1e3) for bound in (asked.first_token_ms, asked.token_ms))
    return f"{asked.percentile} % of first tokens within {first} and further ones within {further}"


def served_as_json(one: ServedDecoder) -> dict[str, Any]:
    """One decoder behind an engine on a machine, with every rate."""
    return {
        "hardware": one.machine.hardware,
        "precision": one.precision,
        "engine": one.software,
        "requests": one.asked.model_dump(mode="json", exclude={"kind"}),
        "start_seconds": one.start_seconds,
        "joules_per_token": one.joules_per_token,
        "meters": one.meters or None,
        "rates": [_rate_as_json(one, rate) for rate in one.rates],
        "evidence": one.evidence.uri,
    }


def _rate_as_json(one: ServedDecoder, rate: ServedRate) -> dict[str, Any]:
    cost = one.per_million(rate)
    percentiles: tuple[Percent, ...] = (50, 90, 99)
    return {
        "requests_per_second": rate.per_second,
        "requests": rate.requests,
        "first_token_seconds": {f"p{at}": rate.first_seconds(at) for at in percentiles},
        "further_token_seconds": {f"p{at}": rate.further_seconds(at) for at in percentiles},
        "share_in_time": rate.good_share,
        "tokens_read_per_second": rate.tokens.read / rate.seconds,
        "tokens_written_per_second": rate.written_per_second,
        "per_million_tokens": cost.mean if isinstance(cost, Estimate) else None,
    }
