"""Forecast the seconds to the first token and between tokens for any model on any machine.

``law`` gives the time from efficiencies fitted for each software. A Gaussian process learns how far
published times are from the law for each software, chip generation, chip, model, precision and
number of devices. No term of the process depends on bandwidth, memory or the number of sequences,
so the law alone decides how times change with these. Devices and processors have separate
processes.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import TypeAdapter

from epochcost.predict.decoders.chips import Chip, chip_of
from epochcost.predict.decoders.doubts import sound_rows
from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.law import (
    BYTES_OF_16_BITS,
    ON_DEVICES,
    ON_PROCESSORS,
    SPREAD_ON_DEVICES,
    SPREAD_ON_PROCESSORS,
    USABLE_MEMORY,
    Efficiencies,
    Step,
    Work,
    step_of,
)
from epochcost.predict.decoders.processors import CpuForm
from epochcost.predict.decoders.programs import Program, Programs, Rows, fit_programs
from epochcost.predict.decoders.rows import Kind, TokenRow
from epochcost.predict.departures import Departures, Term, Traits, covariance, numbered
from epochcost.predict.joint import Draws, joint_draws
from epochcost.predict.process import Matrix, Vector
from epochcost.results.kept import Keep
from epochcost.specs.hardware import Device

# Standard deviations of a logarithm: of rows alike in all traits, and of one published row.
_FLOOR, _ROW = 0.04, 0.1
_GIB = 2**30
# The limit on sequences that fits published rates at full load best (benchmarks/full_load.py).
_MOST_SEQUENCES = 256
_PROMPT_STEP = 2 * math.log(2)
_KIND_DISTANCE = 3.0


@dataclass(frozen=True, slots=True)
class ServingQuestion:
    """A question for the time of a prefill or a decoding step on some devices or processors.

    The model runs on ``count`` devices of one kind. If ``kind`` is ``first``, the question is the
    time to read the prompts of ``sequences`` together. If it is ``token``, the question is the time
    between tokens of each sequence, in answers of ``output`` tokens. The server reads prompts of
    later requests in between if there are several sequences, unless ``interleaved`` says otherwise.
    ``edition`` is a version of the software as published rows name it, the newest if empty.
    ``cached`` tokens of each prompt need no prefill.
    """

    form: DecoderForm
    model: str
    software: str
    precision: str
    weight_bytes: float
    device: Device | CpuForm
    count: int
    kind: Kind
    prompt: float
    output: float
    sequences: float
    interleaved: bool | None = None
    edition: str = ""
    cached: float = 0.0


@dataclass(frozen=True, slots=True)
class SecondsForecast:
    """Predicted seconds; 90 % of true times lie between ``low`` and ``high``.

    ``draws`` are samples of the time's logarithm, relative to ``seconds``. Draws of one model on
    several machines are correlated.
    """

    seconds: float
    low: float
    high: float
    draws: Draws = field(compare=False, repr=False)


class Case(NamedTuple):
    """Properties of a question that decide how far its time is expected to be from the law's."""

    software: str
    maker: str
    kind: str
    chip: str
    place: tuple[str, int, float]
    generation: str
    instructions: str
    model: DecoderForm
    mixture: DecoderForm | None
    devices: int
    precision: str
    edition: str
    size: float
    length: float

    @property
    def program(self) -> Program:
        """The program (software, edition and maker of chips) whose efficiencies apply."""
        return Program(self.software, self.maker, self.edition)


_LABELS = {name: (lambda case, name=name: getattr(case, name)) for name in Case._fields[:12]}
_FEATURES = {"size": lambda case: case.size, "length": lambda case: case.length}
_SIZE, _LENGTH = ("size", 1.2), ("length", 1.5)
ON_DEVICES_TERMS = (
    Term(0.2, ("software", "kind")),
    Term(1.6, ("maker", "software", "kind")),
    Term(0.15, ("generation", "kind")),
    Term(0.05, ("generation", "kind", "software"), (_SIZE, _LENGTH)),
    Term(0.07, ("chip",)),
    Term(0.1, ("chip", "kind")),
    Term(0.08, ("chip", "kind"), (_SIZE,)),
    Term(0.05, ("place", "kind")),
    Term(0.05, ("model", "kind", "software")),
    Term(0.25, ("mixture", "kind")),
    Term(0.15, ("mixture", "place", "kind")),
    Term(0.07, ("kind", "software"), (_SIZE, _LENGTH)),
    Term(0.05, ("precision", "kind", "software")),
    Term(0.07, ("devices", "kind", "software"), (_SIZE,)),
    Term(0.07, ("place", "kind", "software", "model")),
)
ON_PROCESSORS_TERMS = (
    Term(0.2, ("software", "kind")),
    Term(0.35, ("generation", "kind")),
    Term(0.15, ("generation", "kind"), (_SIZE,)),
    Term(0.2, ("chip",)),
    Term(0.2, ("chip", "kind")),
    Term(0.2, ("chip", "kind"), (_SIZE,)),
    Term(0.1, ("place", "kind")),
    Term(0.07, ("model", "kind", "software")),
    Term(0.05, ("kind", "software"), (_SIZE, _LENGTH)),
    Term(0.2, ("place", "kind", "software", "model")),
)


class ServingForecaster:
    """Forecast times of tokens from published rows, except implausible ones and unknown chips.

    ``cache`` is the folder of earlier fits, keyed by all inputs.
    """

    def __init__(self, rows: Sequence[TokenRow], cache: Path | None = None) -> None:
        timed = map(_timed, sound_rows(rows))
        self._rows = tuple(row for row in timed if row is not None and _machine(row))
        self._cache = cache

    @cached_property
    def _newest(self) -> dict[str, str]:
        """The latest edition of each software."""
        latest = sorted(self._rows, key=lambda row: row.date)
        return {row.software: _edition(row) for row in latest}

    @cached_property
    def _devices(self) -> _Side:
        rows = [row for row in self._rows if row.device is not None]
        return _Side(rows, ON_DEVICES, SPREAD_ON_DEVICES, ON_DEVICES_TERMS, self._cache)

    @cached_property
    def _processors(self) -> _Side:
        rows = [row for row in self._rows if row.device is None]
        return _Side(rows, ON_PROCESSORS, SPREAD_ON_PROCESSORS, ON_PROCESSORS_TERMS, self._cache)

    def forecasts(self, questions: Sequence[ServingQuestion]) -> tuple[SecondsForecast, ...]:
        """Forecast the answer to each question, in the order of the questions."""
        groups: dict[tuple[DecoderForm, bool], list[int]] = defaultdict(list)
        for at, question in enumerate(questions):
            groups[question.form, isinstance(question.device, CpuForm)].append(at)
        result: dict[int, SecondsForecast] = {}
        for (_, on_processors), places in groups.items():
            side = self._processors if on_processors else self._devices
            of_side = [self._with_edition(questions[at]) for at in places]
            result |= zip(places, side.forecasts(of_side), strict=True)
        return tuple(result[at] for at in range(len(questions)))

    def _with_edition(self, question: ServingQuestion) -> ServingQuestion:
        newest = self._newest.get(question.software, "")
        return question if question.edition else replace(question, edition=newest)


def serving_question(row: TokenRow) -> ServingQuestion:
    """The question whose answer a published row states."""
    device = row.device or row.cpu
    assert device is not None, "rows of unknown chips are left out before"
    return ServingQuestion(
        form=row.form,
        model=row.model,
        software=row.software,
        precision=row.precision,
        weight_bytes=row.weight_bytes,
        device=device,
        count=row.count if row.software == "llama.cpp" else row.tensor_parallel,
        kind=row.kind,
        prompt=row.prompt,
        output=row.output,
        sequences=row.sequences or 1.0,
        interleaved=row.interleaved,
        edition=_edition(row),
    )


def _timed(row: TokenRow) -> TokenRow | None:
    """The row with ``seconds`` set; None if the row does not determine the seconds.

    For a rate at full load, the row gets the largest power of two of sequences that fit into
    memory.
    """
    if row.seconds is not None:
        return row
    if row.device is None or not row.tokens_per_second:
        return None
    spare = USABLE_MEMORY * float(row.device.memory_gib) * _GIB * row.tensor_parallel
    cached = BYTES_OF_16_BITS * row.form.cached_numbers_per_token * (row.prompt + row.output)
    fitting = min(_MOST_SEQUENCES, (spare - row.weight_bytes) / cached)
    if fitting < 1:
        return None
    sequences = 2.0 ** math.floor(math.log2(fitting))
    return replace(row, sequences=sequences, seconds=sequences / row.tokens_per_second)


def _machine(row: TokenRow) -> Device | CpuForm | None:
    return row.device or row.cpu


def _edition(row: TokenRow) -> str:
    return f"{row.source}: {row.version}"


def _case(question: ServingQuestion, chip: Chip) -> Case:
    length = 0.0
    if question.kind == "first":
        length = _PROMPT_STEP * round(math.log(max(question.prompt, 1.0)) / _PROMPT_STEP)
    return Case(
        software=question.software,
        maker=chip.maker,
        kind=question.kind,
        chip=chip.kind,
        place=(chip.name, question.count, chip.cores),
        generation=chip.generation,
        instructions=chip.instructions,
        model=question.form,
        mixture=question.form if question.form.experts else None,
        devices=question.count,
        precision=question.precision,
        edition=question.edition,
        size=math.log(question.form.active_parameters),
        length=length,
    )


def _step(question: ServingQuestion, chip: Chip) -> Step[float]:
    interleaved = question.interleaved
    if interleaved is None:
        interleaved = question.sequences > 1
    work = Work(
        software=question.software,
        precision=question.precision,
        weight_bytes=question.weight_bytes,
        count=question.count,
        tensor_parallel=question.count,
        token=question.kind == "token",
        interleaved=interleaved,
        prompt=question.prompt,
        output=question.output,
        sequences=question.sequences,
        cached=question.cached,
    )
    return step_of(question.form, chip, work)


def _traits(cases: Sequence[Case]) -> Traits:
    return Traits.of(cases, _LABELS, _FEATURES)


class _Fit(NamedTuple):
    """The fitted efficiencies of programs, and the factors that scale each kind of interval."""

    programs: Programs
    factors: dict[str, float]


_KEPT = Keep("serving", TypeAdapter(tuple[str, _Fit]), ("predict", "specs/hardware.py"))


class _Side:
    """A forecaster for devices only or for processors only, which learns from such rows only."""

    def __init__(
        self,
        rows: Sequence[TokenRow],
        start: Efficiencies,
        spread: Efficiencies,
        terms: Sequence[Term],
        cache: Path | None,
    ) -> None:
        self._start, self._spread = start, spread
        self._terms = terms
        self._chips: dict[tuple[Device | CpuForm, str], Chip] = {}
        questions = [serving_question(row) for row in rows]
        chips = [self._chip(question) for question in questions]
        self._cases = [_case(*pair) for pair in zip(questions, chips, strict=True)]
        self._programs = [case.program for case in self._cases]
        self._steps = [_step(*pair) for pair in zip(questions, chips, strict=True)]
        self._observed = np.log([row.seconds or 1.0 for row in rows])
        key = (self._cases, np.array(self._steps).tobytes(), self._observed.tobytes())
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        self._fit = _KEPT.value(cache, digest, self._fitted)

    def _chip(self, question: ServingQuestion) -> Chip:
        key = question.device, question.precision
        if key not in self._chips:
            self._chips[key] = chip_of(*key)
        return self._chips[key]

    def _fitted(self) -> _Fit:
        chips = [case.chip for case in self._cases]
        rows = Rows(self._steps, self._observed, self._programs, chips)
        self._fit = _Fit(fit_programs(rows, self._start, self._spread), {})
        return self._fit._replace(factors=dict(self._factors()))

    @cached_property
    def _cells(self) -> tuple[list[Case], Vector, Vector]:
        """Distinct cases, each with the median departure and the number of its rows."""
        departures = self._observed - self._fit.programs.law(self._steps, self._programs)
        rows: dict[Case, list[float]] = defaultdict(list)
        for case, departure in zip(self._cases, departures, strict=True):
            rows[case].append(departure)
        medians = np.array([np.median(values) for values in rows.values()])
        return list(rows), medians, np.array([len(values) for values in rows.values()])

    @cached_property
    def _departures(self) -> Departures:
        cases, medians, counts = self._cells
        noise = np.sqrt(_FLOOR**2 + _ROW**2 / counts)
        return Departures(self._terms, noise, _traits(cases), medians)

    def _factors(self) -> Iterator[tuple[str, float]]:
        """Yield each kind of time with the factor that scales its intervals.

        Intervals of this number of standard deviations contain nine of ten rows of left-out chips.
        """
        cases = self._cells[0]
        if not cases:
            return
        kinds = np.array([[_KIND_DISTANCE * (case.kind == "first")] for case in cases])
        groups = numbered([case.chip for case in cases])
        calibration = self._departures.calibration(groups, kinds)
        yield "first", calibration.factor(np.array([_KIND_DISTANCE]))
        yield "token", calibration.factor(np.array([0.0]))

    def forecasts(self, questions: Sequence[ServingQuestion]) -> Iterator[SecondsForecast]:
        """Forecast the times of one model; draws of different machines are correlated."""
        chips = [self._chip(question) for question in questions]
        pairs = list(zip(questions, chips, strict=True))
        steps = [_step(*pair) for pair in pairs]
        cases = [_case(*pair) for pair in pairs]
        law = self._fit.programs.law(steps, [case.program for case in cases])
        cells: dict[Case, int] = {}
        places = [cells.setdefault(case, len(cells)) for case in cases]
        departures, unknown = self._predicted(list(cells))
        factors = np.array([self._fit.factors.get(case.kind, 2.0) for case in cells])
        spread = factors * np.sqrt(np.diag(unknown))
        draws = list(joint_draws(unknown, factors, questions[0].model))
        for at, level in zip(places, law + departures[places], strict=True):
            seconds, ratio = math.exp(level), math.exp(spread[at])
            yield SecondsForecast(seconds, seconds / ratio, seconds * ratio, draws[at])

    def _predicted(self, cases: Sequence[Case]) -> tuple[Vector, Matrix]:
        """Predicted departures of cases, and the covariance of the errors, noise included."""
        noise = (_FLOOR**2 + _ROW**2) * np.eye(len(cases))
        traits = _traits(cases)
        if not self._cases:
            return np.zeros(len(cases)), covariance(self._terms, traits, traits) + noise
        departures, unknown = self._departures.predicted(traits)
        return departures, unknown + noise
