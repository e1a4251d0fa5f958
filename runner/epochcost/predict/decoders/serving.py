"""Forecast the seconds to the first token and between tokens for any model on any machine.

Gaussian processes, one for accelerators and one for CPUs, learn how far published times are from
the formula in ``law``. Only the formula depends on bandwidth, memory and number of sequences.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from epochcost.predict.decoders.chips import CpuForm
from epochcost.predict.decoders.doubts import least_seconds, sound_rows
from epochcost.predict.decoders.law import (
    BYTES_OF_16_BITS,
    ON_DEVICES,
    ON_PROCESSORS,
    SPREAD_ON_DEVICES,
    SPREAD_ON_PROCESSORS,
    USABLE_MEMORY,
    Efficiencies,
    Law,
)
from epochcost.predict.decoders.programs import Programs, fit_programs
from epochcost.predict.decoders.rows import ServingQuestion, TokenRow
from epochcost.predict.departures import Departures, Term, Traits
from epochcost.predict.joint import Forecast, forecasts_of
from epochcost.predict.process import Labels, Matrix, Vector, numbered
from epochcost.results.kept import Keep
from epochcost.specs.hardware import Device
from epochcost.statistics import group_by

# Standard deviations of a logarithm: of rows alike in all traits, and of one published row.
_FLOOR, _ROW = 0.04, 0.1
# The same between sources, which measure in their own way and with their own settings: for a token
# on one device, and for other times. A reader's run is like a new source. With these values, 90 %
# of the 90 % ranges hold without the row's source; with 0, 63 % held (2026-11-29,
# benchmarks/token_prediction.py --leave-out source).
_SOURCE_OF_TOKENS, _SOURCE = 0.35, 0.5
_GIB = 2**30
# The limit on sequences that fits published rates at full load best (benchmarks/full_load.py).
_MOST_SEQUENCES = 256
_PROMPT_STEP = 2 * math.log(2)
_WORK_DISTANCE = 3.0
_WORKS = ("token", "first", "load")


def _work(question: ServingQuestion) -> str:
    """The kind of time: "first", "token", or "load" if prompts are read between the tokens."""
    return "load" if question.interleaved else question.kind


def _log_prompt(question: ServingQuestion) -> float:
    return 0.0 if question.kind == "token" else math.log(max(question.prompt, 1.0))


_LABELS: Mapping[str, Callable[[ServingQuestion], Hashable]] = {
    "software": attrgetter("software"),
    "maker": attrgetter("chip.maker"),
    "kind": attrgetter("kind"),
    "work": _work,
    "chip": attrgetter("chip.kind"),
    "place": attrgetter("chip.name", "count", "chip.cores"),
    "generation": attrgetter("chip.generation"),
    "model": attrgetter("form"),
    "mixture": lambda question: question.form if question.form.experts else None,
    "devices": attrgetter("count"),
    "precision": attrgetter("precision"),
}
_FEATURES: Mapping[str, Callable[[ServingQuestion], float]] = {
    "size": lambda question: math.log(question.form.active_parameters),
    "length": _log_prompt,
}
# Rows count as alike if their prompts are. Prompts of questions are not rounded, so that a prompt
# with one token more takes about as long.
_FEATURES_OF_ROWS: Mapping[str, Callable[[ServingQuestion], float]] = {
    **_FEATURES,
    "length": lambda question: _PROMPT_STEP * round(_log_prompt(question) / _PROMPT_STEP),
}
_SIZE, _LENGTH = ("size", 1.2), ("length", 1.5)
ON_DEVICES_TERMS = (
    Term(0.2, ("software", "work")),
    Term(1.8, ("maker", "software", "work")),
    Term(0.15, ("generation", "work")),
    Term(0.05, ("generation", "work", "software"), (_SIZE, _LENGTH)),
    Term(0.07, ("chip",)),
    Term(0.1, ("chip", "work")),
    Term(0.08, ("chip", "work"), (_SIZE,)),
    Term(0.05, ("place", "work")),
    Term(0.05, ("model", "work", "software")),
    Term(0.25, ("mixture", "kind")),
    Term(0.15, ("mixture", "place", "kind", "software")),
    Term(0.07, ("work", "software"), (_SIZE, _LENGTH)),
    Term(0.05, ("precision", "work", "software")),
    Term(0.07, ("devices", "work", "software"), (_SIZE,)),
    Term(0.07, ("place", "work", "software", "model")),
)
ON_PROCESSORS_TERMS = (
    Term(0.2, ("software", "work")),
    Term(0.12, ("maker", "software", "work")),
    Term(0.25, ("generation", "work")),
    Term(0.24, ("generation", "work"), (_SIZE,)),
    Term(0.2, ("chip",)),
    Term(0.2, ("chip", "work")),
    Term(0.2, ("chip", "work"), (_SIZE,)),
    Term(0.1, ("place", "work")),
    Term(0.1, ("model", "work", "software")),
    Term(0.05, ("work", "software"), (_SIZE, _LENGTH)),
    Term(0.2, ("place", "work", "software", "model")),
)


class ServingForecaster:
    """Forecast times of prefills and decoding steps from published measurements.

    Implausible ``rows`` are ignored. ``cache`` is the folder of earlier fits, keyed by all inputs.
    """

    def __init__(self, rows: Sequence[TokenRow], cache: Path | None = None) -> None:
        self._rows = [row for row in map(_with_seconds, sound_rows(rows)) if row is not None]
        self._cache = cache

    @cached_property
    def _newest_edition_by_software(self) -> dict[str, str]:
        latest = sorted(self._rows, key=lambda row: row.line.cells["date"])
        return {row.question.software: row.question.edition for row in latest}

    @cached_property
    def _devices(self) -> _ChipsForecaster:
        rows = [row for row in self._rows if isinstance(row.question.device, Device)]
        return _ChipsForecaster(rows, ON_DEVICES, SPREAD_ON_DEVICES, ON_DEVICES_TERMS, self._cache)

    @cached_property
    def _processors(self) -> _ChipsForecaster:
        rows = [row for row in self._rows if isinstance(row.question.device, CpuForm)]
        return _ChipsForecaster(
            rows, ON_PROCESSORS, SPREAD_ON_PROCESSORS, ON_PROCESSORS_TERMS, self._cache
        )

    def forecasts(self, questions: Sequence[ServingQuestion]) -> tuple[Forecast, ...]:
        """Forecast the answer to each question, in the order of the questions."""
        result: dict[int, Forecast] = {}
        for places, forecaster, asked in self._by_model_and_kind_of_chip(questions):
            answers = map(Forecast.at_least, forecaster.forecasts(asked), map(least_seconds, asked))
            result |= zip(places, answers, strict=True)
        return tuple(result[at] for at in range(len(questions)))

    def seconds(self, questions: Sequence[ServingQuestion]) -> tuple[float, ...]:
        """Predict the answer to each question, in order, without the intervals of `forecasts`."""
        result = np.empty(len(questions))
        for places, forecaster, asked in self._by_model_and_kind_of_chip(questions):
            least = [*map(least_seconds, asked)]
            result[list(places)] = np.maximum(forecaster.seconds(asked), least)
        return tuple(result.tolist())

    def _by_model_and_kind_of_chip(
        self, questions: Sequence[ServingQuestion]
    ) -> Iterator[tuple[Sequence[int], _ChipsForecaster, list[ServingQuestion]]]:
        kinds = [(question.form, isinstance(question.device, CpuForm)) for question in questions]
        for (_, on_processors), places in group_by(range(len(kinds)), kinds.__getitem__).items():
            forecaster = self._processors if on_processors else self._devices
            yield places, forecaster, [self._with_edition(questions[at]) for at in places]

    def _with_edition(self, question: ServingQuestion) -> ServingQuestion:
        newest = self._newest_edition_by_software.get(question.software, "")
        return question if question.edition else replace(question, edition=newest)


def _with_seconds(row: TokenRow) -> TokenRow | None:
    """The row of a copy of the model, whose ``count`` devices share each layer; None without time.

    Devices that hold whole layers serve about as many sequences as copies of the model.
    """
    question, copies = row.question, row.line.devices / row.question.count
    if row.seconds is not None:
        sequences = max(1.0, question.sequences / copies)
        return replace(row, question=replace(question, sequences=sequences))
    if isinstance(question.device, CpuForm) or not row.tokens_per_second:
        return None
    spare = USABLE_MEMORY * float(question.device.memory_gib) * _GIB * question.count
    form, tokens = question.form, question.prompt + question.output
    cached_numbers = form.cached_numbers_per_token * form.kept_tokens(tokens)
    fitting = (spare - question.weight_bytes) / (BYTES_OF_16_BITS * cached_numbers)
    if fitting < 1:
        return None
    # Assumed for rates at full load: the largest power of two of sequences that fits into memory.
    sequences = 2.0 ** math.floor(math.log2(min(_MOST_SEQUENCES, fitting)))
    return replace(
        row,
        question=replace(question, sequences=sequences),
        seconds=sequences * copies / row.tokens_per_second,
    )


class _Fit(NamedTuple):
    programs: Programs
    # By kind of time: half the width of a 90 % interval, in predicted standard deviations.
    interval_factors: dict[str, float]


_KEPT = Keep("serving", TypeAdapter(tuple[str, _Fit]), ("predict", "specs/hardware.py"))


class _ChipsForecaster:
    """Forecast serving times from published ``rows``, on accelerators only or on CPUs only."""

    def __init__(
        self,
        rows: Sequence[TokenRow],
        start: Efficiencies,
        spread: Efficiencies,
        terms: Sequence[Term],
        cache: Path | None,
    ) -> None:
        self._start, self._spread, self._terms = start, spread, terms
        self._questions = [row.question for row in rows]
        self._sources = {question.source for question in self._questions}
        self._observed = np.log([row.seconds or 1.0 for row in rows])
        self._traits_and_editions = [
            (_trait_values(question, _FEATURES_OF_ROWS), question.edition)
            for question in self._questions
        ]
        amounts = [column.tobytes() for column in Law(self._questions).columns]
        content = self._traits_and_editions, self._observed.tobytes(), amounts
        empty = _Fit(Programs(tuple(np.log(start)), {}), {})
        self._fit = _KEPT.value(cache, content, self._fitted) if rows else empty

    def _fitted(self) -> _Fit:
        programs = fit_programs(self._questions, self._observed, self._start, self._spread)
        self._fit = _Fit(programs, {})
        return self._fit._replace(interval_factors=self._interval_factors())

    @cached_property
    def _groups_of_alike_rows(self) -> tuple[list[ServingQuestion], Vector, Vector]:
        """Groups of alike published times: first question, median departure and size of each.

        Times are alike if they agree in ``edition`` and in all ``_LABELS`` and
        ``_FEATURES_OF_ROWS``.
        """
        departures = self._observed - self._fit.programs.law(self._questions)
        groups = group_by(
            range(len(self._traits_and_editions)), self._traits_and_editions.__getitem__
        ).values()
        medians = np.array([np.median(departures[list(places)]) for places in groups])
        first = [self._questions[places[0]] for places in groups]
        return first, medians, np.array([len(places) for places in groups])

    @cached_property
    def _departures(self) -> Departures:
        questions, medians, counts = self._groups_of_alike_rows
        noise = np.sqrt(_FLOOR**2 + _ROW**2 / counts)
        traits = Traits.of(questions, _LABELS, _FEATURES_OF_ROWS)
        return Departures(self._terms, noise, traits, medians)

    def _interval_factors(self) -> dict[str, float]:
        questions = self._groups_of_alike_rows[0]
        kinds = np.array([[_WORK_DISTANCE * _WORKS.index(_work(each))] for each in questions])
        # Each row is predicted from the rows of other chips.
        groups = numbered([question.chip.kind for question in questions])
        calibration = self._departures.calibration(groups, kinds)
        return {
            kind: calibration.factor(np.array([_WORK_DISTANCE * at]))
            for at, kind in enumerate(_WORKS)
        }

    def forecasts(self, questions: Sequence[ServingQuestion]) -> list[Forecast]:
        """Forecast the times for questions about one model; draws correlate like the errors."""
        at, cells = _cells(questions)
        departures, unknown = self._departures.predicted(Traits.of(cells, _LABELS, _FEATURES))
        unknown += (_FLOOR**2 + _ROW**2) * np.eye(len(cells))
        unknown += self._covariance_of_new_sources(cells)
        factors = [self._fit.interval_factors.get(_work(cell), 2.0) for cell in cells]
        levels = self._fit.programs.law(questions) + departures[at]
        return forecasts_of(levels, at, unknown, np.array(factors), questions[0].model)

    def seconds(self, questions: Sequence[ServingQuestion]) -> Vector:
        """Predict the seconds [n] of n ``questions``, the same as those of `forecasts`."""
        at, cells = _cells(questions)
        departures = self._departures.means(Traits.of(cells, _LABELS, _FEATURES))
        seconds: Vector = np.exp(self._fit.programs.law(questions) + departures[at])
        return seconds

    def _covariance_of_new_sources(self, questions: Sequence[ServingQuestion]) -> Matrix:
        """Covariance [n, n] of the errors that sources without learnt times add to n answers.

        Answers for one new source share an error if they agree in software and in ``kind``.
        """
        deviations = np.array(
            [0.0 if each.source in self._sources else _source_deviation(each) for each in questions]
        )
        labels = numbered([(each.source, each.software, each.kind) for each in questions])
        result: Matrix = np.outer(deviations, deviations) * (labels[:, None] == labels)
        return result


def _cells(questions: Sequence[ServingQuestion]) -> tuple[Labels, list[ServingQuestion]]:
    """The index of each question's error, and a question for each error."""
    at = numbered((_trait_values(question, _FEATURES), question.source) for question in questions)
    return at, [questions[first] for first in np.unique(at, return_index=True)[1]]


def _source_deviation(question: ServingQuestion) -> float:
    return _SOURCE_OF_TOKENS if question.kind == "token" and question.count == 1 else _SOURCE


def _trait_values(
    question: ServingQuestion, features: Mapping[str, Callable[[ServingQuestion], float]]
) -> tuple[Hashable, ...]:
    return tuple(trait(question) for trait in (*_LABELS.values(), *features.values()))
