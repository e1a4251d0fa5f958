"""Describe the times of a decoder's phases on a device by a few numbers, for any traffic.

The time of a decoding step of c sequences has three parts. The first depends only on c. The second
grows with c times the context's length. The third is the wait while the server reads new prompts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, islice
from operator import attrgetter

import numpy as np
from pydantic import TypeAdapter

from epochcost.analysis.serving_capacity import ENGINES, Layout, ServedModel, fitting, question_of
from epochcost.analysis.token_answers import TokenMarket
from epochcost.analysis.tokens import Requests
from epochcost.predict.decoders.rows import ServingQuestion
from epochcost.results.kept import Keep
from epochcost.specs.decoder import ServedPrecision
from epochcost.statistics import group_by

# Powers of two, which capacities try.
SEQUENCES = tuple(2**power for power in range(9))
# Prompts that determine a quadratic; they are shorter if the model's context is.
_PROMPTS = (1000, 4000, 16000)
# Prompts whose first token is forecast. Devices read short ones at a lower efficiency.
_FIRST_PROMPTS = (1, 32, 128, 512, *_PROMPTS)
MOST_FIRSTS = len(_FIRST_PROMPTS)
# With room for two such requests, the wait for each other's prompt can be separated.
_TWO = Requests(Decimal(1), 2 * _PROMPTS[0], 1)
# An answer so long that the wait for prompts does not count.
_LONG_OUTPUT = 10**6


@dataclass(frozen=True, slots=True)
class DeviceTiming:
    """Predicted seconds of serving a decoder on devices of one kind, with one serving software.

    These seconds apply to all ``layouts`` of the decoder. With empty caches, a decoding step of c
    sequences takes ``step``, with an element for each c: 1, 2, 4, ... Each token in the cache of
    any sequence adds ``cached``.

    Reading a prompt of n tokens delays other requests by p(n) = ``read[0]`` + ``read[1]`` n +
    ``read[2]`` a(n), where a(n) is ``DecoderForm.attended_pairs``. ``first`` has a pair for each of
    a few prompts, the shortest first: p(n), and the seconds to the first token. For other prompts,
    these seconds are interpolated between the values of p(n).

    If c > 1, an answer takes ``loaded`` · (s + ``once`` + c p(n)) seconds. Here s is the sum of the
    answer's decoding steps. ``once`` is a further delay by prompts, the same for each answer.
    ``loaded`` is the factor by which the reading of prompts slows the answer.

    ``spread`` has the low and the high end, divided by the mean, of three intervals: for the first
    token, for a token if c = 1, and for a token if c > 1.
    """

    layouts: tuple[Layout, ...]
    step: tuple[float, ...]
    cached: float
    read: tuple[float, ...]
    once: float
    first: tuple[tuple[float, float], ...]
    loaded: float
    spread: tuple[float, ...]


# The answers in seconds to ``_timing_questions``, by the same names, and ``DeviceTiming.spread``.
_Phases = tuple[dict[str, list[float]], tuple[float, ...]]
_KEPT = Keep("phases", TypeAdapter(tuple[str, list[_Phases]]), ("analysis/traffic.py", "predict"))


def predicted_timings(
    market: TokenMarket, name: str, precision: ServedPrecision
) -> Iterator[DeviceTiming]:
    """Yield the timings of a decoder, unless its spec lacks dimensions that the forecast needs."""
    decoder = market.inputs.catalogue.decoder(name)
    model = ServedModel.of(name, decoder, precision)
    if model is None or not market.forecasts_tokens:
        return
    layouts, _ = fitting(model, market.places[0], ENGINES, _TWO)
    groups = [*group_by(layouts, _timing_key).values()]
    scale = min(1, decoder.context / _PROMPTS[-1])
    prompts = [int(scale * prompt) for prompt in _PROMPTS]
    questions = [_timing_questions(model, group[0], prompts) for group in groups]
    # The other questions of a group follow from the first and the prompts.
    key = market.evidence, prompts, [group["step"][0] for group in questions]
    forecasts = _KEPT.value(market.inputs.cache, key, lambda: [*_forecast(market, questions)])
    for group, phases in zip(groups, forecasts, strict=True):
        yield _timing_from_answers(group, prompts, *phases)


def _forecast(
    market: TokenMarket, groups: Sequence[Mapping[str, Sequence[ServingQuestion]]]
) -> Iterator[_Phases]:
    every = [question for group in groups for part in group.values() for question in part]
    upto = _FIRST_PROMPTS.index(_PROMPTS[0]) + 1
    ranged = [(group["first"][:upto][-1], group["step"][0], group["long"][1]) for group in groups]
    seconds = iter(market.forecaster.seconds(every))
    ends = iter(market.forecaster.forecasts([*chain.from_iterable(ranged)]))
    for group, questions in zip(groups, ranged, strict=True):
        forecasts = islice(ends, len(questions))
        spread = [(each.low / each.seconds, each.high / each.seconds) for each in forecasts]
        answers = {name: [*islice(seconds, len(part))] for name, part in group.items()}
        yield answers, tuple(chain(*spread))


# Layouts that agree in these facts have equal times and memory.
_timing_key = attrgetter("engine.name", "place.device", "devices", "place.memory_bytes")


def _timing_questions(
    model: ServedModel, layout: Layout, prompts: Sequence[int]
) -> dict[str, list[ServingQuestion]]:
    """The questions to a forecaster whose answers determine a device's timing, by their names.

    A step "with a wait" includes reading new prompts.

    - "step": a step without a prompt, for each number of sequences in ``SEQUENCES``;
    - "alone" and "waiting": a step after each of ``prompts``, without and with a wait;
    - "two": a step of two sequences, without and with a wait;
    - "long": a step of a long answer, without and with a wait;
    - "first": the first token for prompts of several lengths.
    """
    first = question_of(model, replace(_TWO, prompt=0), layout, "first", 1)
    token = replace(first, kind="token", interleaved=False)
    waiting = replace(token, interleaved=True)
    return {
        "step": [replace(token, sequences=sequences) for sequences in SEQUENCES],
        "alone": [replace(token, prompt=prompt) for prompt in prompts],
        "waiting": [replace(waiting, prompt=prompt) for prompt in prompts],
        "two": [replace(each, prompt=prompts[0], sequences=2) for each in (token, waiting)],
        "long": [replace(each, output=_LONG_OUTPUT) for each in (token, waiting)],
        "first": [replace(first, prompt=prompt) for prompt in _first_prompts(prompts[-1])],
    }


def _first_prompts(longest: int) -> list[int]:
    return [*(prompt for prompt in _FIRST_PROMPTS if prompt < longest), longest]


def _timing_from_answers(
    layouts: Sequence[Layout],
    prompts: Sequence[int],
    answers: Mapping[str, Sequence[float]],
    spread: tuple[float, ...],
) -> DeviceTiming:
    step, alone, waiting, two, long = (
        np.array(answers[name]) for name in ("step", "alone", "waiting", "two", "long")
    )
    loaded = long[1] / long[0]
    form = layouts[0].form
    pairs = np.array([*map(form.attended_pairs, prompts)])
    waited = waiting / loaded - alone
    once = max(2 * waited[0] - (two[1] / loaded - two[0]), 0.0)
    basis = np.stack([np.ones_like(pairs), prompts, pairs], axis=1)
    # Several solutions are possible if all layers have a window that is shorter than the prompts.
    read = np.linalg.lstsq(basis, waited - once)[0]
    firsts = _first_prompts(prompts[-1])
    reads = (read @ (1, prompt, form.attended_pairs(prompt)) for prompt in firsts)
    return DeviceTiming(
        layouts=tuple(layouts),
        step=tuple(step),
        cached=(alone[-1] - step[0]) / form.kept_tokens(prompts[-1]),
        read=tuple(read),
        once=once,
        first=tuple(zip(map(float, reads), answers["first"], strict=True)),
        loaded=loaded,
        spread=spread,
    )
