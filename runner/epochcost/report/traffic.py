"""Write the scripts from whose data `tokens.js` computes the cost of a reader's traffic.

The traffic is a rate of requests to a decoder, with the lengths of prompts and answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, get_args

from epochcost.analysis.machines import Machine, published_machine
from epochcost.analysis.phases import TimedDecoder, ends_of, seconds_at
from epochcost.analysis.tokens import (
    MOST_BUSY,
    break_even_rate,
    busy_per_million,
    hourly_plans,
    machines_for,
    rented_per_million,
    token_seconds,
)
from epochcost.analysis.traffic import MOST_FIRSTS, DeviceTiming, predicted_timings
from epochcost.cost.estimate import Time
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.program import answers_program
from epochcost.cost.tracing import maximum, symbol, where
from epochcost.report.escape import one_line
from epochcost.report.pages.page import Report
from epochcost.report.tables import as_script
from epochcost.report.wording import SHAPES
from epochcost.specs.api import MILLION, ApiPrice
from epochcost.specs.decoder import ServedPrecision

FOLDER = "data/calculator/tokens"
SHARED = f"{FOLDER}.js"
PRECISIONS: tuple[ServedPrecision, ...] = get_args(ServedPrecision)
_PROMPT, _OUTPUT, _RATE, _HOUR = map(symbol, ("prompt", "output", "rate", "hour"))
# Seconds to read a prompt, and to its first token, of the prompts of ``DeviceTiming.first``.
_FIRST_TOKEN_NAMES = [(f"at{index}", f"first{index}") for index in range(MOST_FIRSTS)]
# The share of each prompt that is in the cache.
_SHARE = symbol("share")


def token_files(report: Report, names: Collection[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield address and text of each script: one for all decoders together, several for each.

    The common script has machines' prices and formulas for predicted times. Each decoder has a
    script with its APIs and measured times, and a script of predicted times for each precision.
    ``names`` are decoders' ids; None means all with measured times or in ``report.tokens``.
    """
    shared = {
        "most_busy": float(MOST_BUSY),
        "shapes": dict(SHAPES),
        "machines": {
            machine.id: _machine(report, published_machine(machine))
            for machine in report.catalogue.hardware.values()
        },
        "capacity": _token_seconds_program(),
        "request": _request_seconds_program(),
        "cost": _token_cost_program(),
    }
    yield SHARED, as_script("epochcostTokens", shared)
    if names is None:
        names = {*report.decoders, *report.tokens}
    for name in sorted(names):
        named = (api for api in report.catalogue.apis.values() if api.model == name)
        apis = [api for api in named if not api.reservation and api.currency == report.currency]
        published = {
            "decoders": [
                _decoder(report, timed)
                for timed in report.decoders.get(name, ())
                if timed.sequences
            ],
            "apis": [_api(api) for api in apis],
        }
        yield f"{FOLDER}/{name}.js", as_script(f"epochcost-tokens/{name}", published)
        for precision in PRECISIONS:
            predicted = predicted_timings(report.market, name, precision)
            timings = [_timing(timing, precision) for timing in predicted]
            script = as_script(f"epochcost-tokens/{name}/{precision}", timings)
            yield f"{FOLDER}/{name}/{precision}.js", script


def _timing(timing: DeviceTiming, precision: ServedPrecision) -> Any:
    layout = timing.layouts[0]
    read = dict(zip(("read0", "read1", "read2"), timing.read, strict=True))
    # With a short context there are fewer points; the last one holds beyond it.
    last_at, last_seconds = timing.first[-1]
    beyond = ((last_at + more, last_seconds) for more in itertools.count(1))
    points = zip(_FIRST_TOKEN_NAMES, itertools.chain(timing.first, beyond), strict=False)
    first = {name: value for pair in points for name, value in zip(*pair, strict=True)}
    phases = {
        "cached": timing.cached,
        "once": timing.once,
        "loaded": timing.loaded,
        **read,
        **first,
        "window": layout.form.window,
        "windowed": layout.form.windowed,
    }
    return {
        "software": layout.engine.name,
        # Devices without bf16 compute in fp16.
        "precision": layout.deployment(precision).precision,
        "room": int(layout.room),
        # As many powers of two as the engine processes sequences.
        "step": _rounded(timing.step[: layout.engine.most_sequences.bit_length()]),
        "phases": dict(zip(phases, _rounded(phases.values()), strict=True)),
        "spread": _rounded(timing.spread),
        "machines": {alike.place.machine.hardware: alike.copies for alike in timing.layouts},
    }


def _rounded(predictions: Iterable[float]) -> list[float]:
    # Predictions are precise to fewer than five digits.
    return [float(f"{value:.5g}") for value in predictions]


def _decoder(report: Report, timed: TimedDecoder) -> Any:
    return {
        "machine": timed.machine.hardware,
        **_machine(report, timed.machine),
        "precision": timed.precision,
        "software": one_line(timed.software),
        "longest": {phase: longest for phase, (_, longest) in timed.lengths.items()},
        "capacities": [
            {"sequences": number, "program": _measured_traffic_program(timed, number)}
            for number in timed.sequences
        ],
    }


def _machine(report: Report, machine: Machine) -> Any:
    return {
        "name": one_line(machine.name),
        "plans": [
            {
                "name": one_line(" ".join(price.provider_and_plan)),
                "as_of": str(price.as_of),
                "assumed": price.assumed,
                "unconfirmed": price.unconfirmed_text,
                "reserved": bool(price.reservation),
                "currency": price.currency,
                "hour": float(hour),
            }
            for price, hour in hourly_plans(report.catalogue, machine)
            if price.currency == report.currency
        ],
    }


def _token_seconds_program() -> Any:
    """JSON formulas for the seconds to read a prompt and write a token on one copy of a model."""
    # The seconds to decode a token with an empty cache are ``step`` for all sequences together, and
    # ``alone`` for a single sequence.
    sequences, step, alone, cached, once, loaded, room = map(
        symbol, ("sequences", "step", "alone", "cached", "once", "loaded", "room")
    )
    with exact_arithmetic():
        # As Layout.cached_tokens: the cache stores one prompt for a later request.
        kept = _kept_tokens(_PROMPT + _OUTPUT)
        spare = maximum(Decimal(0), room / sequences - kept)
        left = maximum(_PROMPT - _SHARE * _PROMPT, _PROMPT - spare)
        pairs = _attended_pairs(_PROMPT) - _attended_pairs(_PROMPT - left)
        read = symbol("read0") + left * symbol("read1") + pairs * symbol("read2")
        points = [(symbol(at), symbol(seconds)) for at, seconds in _FIRST_TOKEN_NAMES]
        first = maximum(alone, seconds_at(points, read))
        in_cache = cached * _kept_tokens(_PROMPT + _OUTPUT / 2)
        single, full = alone + in_cache, step + sequences * in_cache
        # The polynomial, which was fitted to longer prompts, may be negative for a short one.
        waited = sequences * maximum(Decimal(0), read) + once
        token = loaded * (full + waited / _OUTPUT)
        later = where(_OUTPUT <= 1, single, (_OUTPUT * token - first) / (_OUTPUT - 1))
        return answers_program(
            {
                "fitting": room / kept,
                "first": first,
                "token": where(sequences <= 1, single, token),
                "between": where(sequences <= 1, single, maximum(single, later)),
            }
        )


def _kept_tokens(tokens: Decimal) -> Decimal:
    # As DecoderForm.kept_tokens.
    return tokens - symbol("windowed") * maximum(Decimal(0), tokens - symbol("window"))


def _attended_pairs(tokens: Decimal) -> Decimal:
    # As DecoderForm.attended_pairs.
    hidden = maximum(Decimal(0), tokens - symbol("window"))
    return tokens * tokens - symbol("windowed") * hidden * hidden


def _request_seconds_program() -> Any:
    first, token, sequences, copies = map(symbol, ("first", "token", "sequences", "copies"))
    with exact_arithmetic():
        shared = _OUTPUT * token / sequences
        request = where(sequences <= 1, first + (_OUTPUT - 1) * token, shared) / copies
    return answers_program({"request": request})


def _token_cost_program() -> Any:
    """JSON formulas for the cost of a million tokens.

    ``request_low``, ``request`` and ``request_high`` are a machine's seconds for a request. The
    browser sets these, ``rate`` (requests a second), ``hour`` (a machine's hourly cost) and
    ``api_request`` (an API's cost of a request).

    The load needs ``machines`` machines. ``low``, ``mean`` and ``high`` are costs if these are
    rented all the time, ``full_low``, ``full`` and ``full_high`` if a machine is never idle. Above
    ``turn`` requests a second, a machine costs less than the API; 0 if it cannot serve so many.
    """
    request, tokens = symbol("request"), _PROMPT + _OUTPUT
    bills = {}
    with exact_arithmetic():
        for end, rented in {"_low": "low", "": "mean", "_high": "high"}.items():
            seconds = symbol(f"request{end}")
            count = machines_for(_RATE, seconds)
            bills[rented] = rented_per_million(_HOUR, count, _RATE, tokens)
            bills[f"full{end}"] = busy_per_million(_HOUR, seconds, tokens)
        turn = break_even_rate(_HOUR, symbol("api_request"))
        # 0 if a machine that serves enough requests would be too busy.
        bills["turn"] = where(turn * request <= MOST_BUSY, turn, Decimal(0))
        return answers_program({"machines": machines_for(_RATE, request), **bills})


def _measured_traffic_program(timed: TimedDecoder, sequences: int) -> Any:
    prefills, decodes = timed.steps("prefill", 1), timed.steps("decode", sequences)
    middle = _PROMPT + _OUTPUT / 2
    firsts = [seconds_at(_rounded_to_nine_digits(points), _PROMPT) for points in ends_of(prefills)]
    steps = [seconds_at(_rounded_to_nine_digits(points), middle) for points in ends_of(decodes)]
    with exact_arithmetic():
        low, mean, high = (
            first + _OUTPUT * step / sequences for first, step in zip(firsts, steps, strict=True)
        )
    return answers_program(
        {
            # 1 if prompt and answer are within the measured lengths, else 0.
            "timed": _within_lengths_formula(prefills, _PROMPT)
            * _within_lengths_formula(decodes, middle),
            "first": firsts[1],
            "token": token_seconds(firsts[1], steps[1], _OUTPUT, sequences),
            "request_low": low,
            "request": mean,
            "request_high": high,
        }
    )


def _rounded_to_nine_digits(points: Sequence[tuple[int, Decimal]]) -> list[tuple[int, Decimal]]:
    # More digits would only enlarge the script.
    return [(tokens, Decimal(f"{seconds:.9g}")) for tokens, seconds in points]


def _within_lengths_formula(steps: Sequence[tuple[int, Time]], tokens: Decimal) -> Decimal:
    shortest, longest = Decimal(steps[0][0]), Decimal(steps[-1][0])
    at_most = where(tokens <= longest, Decimal(1), Decimal(0))
    return where(tokens < shortest, Decimal(0), at_most)


def _api(api: ApiPrice) -> Any:
    asked = _PROMPT, _OUTPUT, _SHARE, Decimal(0)
    request = api.undiscounted(*asked)
    if api.long is not None:
        long_request = api.long.undiscounted(*asked)
        request = where(api.long.above_tokens >= _PROMPT, request, long_request)
    cost = {"request": request, "mean": request * MILLION / (_PROMPT + _OUTPUT)}
    return {
        "name": one_line(f"{api.provider}, {api.name}"),
        "as_of": str(api.as_of),
        "currency": api.currency,
        "batch_percent": float(api.batch_percent),
        "program": answers_program(cost),
    }
