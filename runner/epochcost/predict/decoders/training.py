"""Forecast the seconds per token in which devices train a language model, with intervals.

A Gaussian process learns how far published trainings depart from a fitted formula, the law.

Sources: Kaplan et al. 2020, arXiv 2001.08361 (operations of a forward pass); Chen et al. 2016,
arXiv 1604.06174 (checkpointing).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from epochcost.errors import InputError
from epochcost.predict.decoders.chips import Chip, chip_of
from epochcost.predict.decoders.doubts import doubted_training_rows
from epochcost.predict.decoders.training_rows import TrainingQuestion, TrainingRow
from epochcost.predict.departures import Departures, Term, Traits, fitted
from epochcost.predict.joint import Forecast, forecasts_of
from epochcost.predict.process import Calibration, Vector, numbered

# Software that starts each kernel from Python, as most tuning does; compiled programs take a
# fraction of the time, except for the many kernels of experts.
_EAGER = frozenset({"DeepSpeed", "LLaMA-Factory", "Unsloth"})
_COMPILED_SHARE = 0.3
# Attention gains from matrix units as much as from bandwidth, because its exponentials run on other
# units. The ratio of the two rates of an A100.
_OPERATIONS_PER_BYTE = 150
_NOISE = 0.06
_BYTES = 2


class Efficiencies(NamedTuple):
    """Positive parameters of the formula for training times; the fit is of their logarithms.

    - ``products``, ``link``: reached shares of the peak rate in 16 bits and of a link's rate.
    - ``eight``: reached share of the peak rate in fp8 or fp4, divided by ``products``.
    - ``attention``: reached share of √(150 · bandwidth · peak rate in 16 bits), / ``products``.
    - ``layer``: seconds that a layer adds to each pass.
    - ``weights``: how many times a pass reads the weights.
    - ``unpacking``: the time to unpack a quantised weight, in bytes that could be read meanwhile.
    - ``experts``, ``doubling``: factors on the time of models with experts, and for each doubling
      of the number of devices.
    - ``traffic``: bytes moved for each activation.
    - ``balance``: exponent of (peak rate in 16 bits / bandwidth / 150) in matrix products' time.
    """

    products: float
    eight: float
    layer: float
    weights: float
    unpacking: float
    experts: float
    doubling: float
    attention: float
    link: float
    traffic: float
    balance: float


_START = Efficiencies(0.6, 0.8, 1e-3, 1.0, 20.0, 1.5, 1.03, 0.5, 0.7, 60.0, 0.15)
_SPREAD = Efficiencies(0.5, 0.12, 1.0, 0.5, 1.0, 0.4, 0.05, 0.5, 0.6, 0.7, 0.5)
# No term depends on a device's rates, so a higher peak never makes a training slower.
_TERMS = (
    Term(0.08, ("bits",)),
    Term(0.06, ("family",), (("tokens", 1.5), ("size", 1.0))),
    Term(0.12, ("family", "method")),
    Term(0.15, ("family",), (("attention", 0.5),)),
    Term(0.2, ("family", "experts")),
    Term(0.2, ("chip",)),
    Term(0.05, ("device",)),
    Term(0.1, ("device", "model")),
    Term(0.1, ("model", "method", "family", "bits", "length")),
)


class TrainingForecaster:
    """Forecast the seconds per token of trainings from the published trainings in ``rows``.

    Only plausible and ``learnable`` rows count. Raises InputError if there is none.
    """

    def __init__(self, rows: Sequence[TrainingRow]) -> None:
        doubts = doubted_training_rows(rows)
        learnt = [row for at, row in enumerate(rows) if row.learnable and at not in doubts]
        if not learnt:
            raise InputError("expected published trainings in specs/observations, found none")
        self._questions = [row.question for row in learnt]
        self._law = Law(self._questions)
        self._observed = -np.log([row.tokens_per_second for row in learnt])

    @cached_property
    def efficiencies(self) -> Efficiencies:
        """The fitted parameters of the formula for the seconds per token."""
        logarithms = fitted(self._law, self._observed, np.log(_START), np.array(_SPREAD))
        return Efficiencies(*np.exp(logarithms))

    @cached_property
    def _departures(self) -> Departures:
        departures = self._observed - self._law(np.log(self.efficiencies))
        traits = Traits.of(self._questions, _LABELS, _FEATURES)
        return Departures(_TERMS, _NOISE, traits, departures)

    @cached_property
    def _calibration(self) -> Calibration:
        groups = numbered([question.device.chip for question in self._questions])
        features = np.array([_calibration_features(question) for question in self._questions])
        return self._departures.calibration(groups, features)

    def forecasts(self, questions: Sequence[TrainingQuestion]) -> list[Forecast]:
        """Forecast the seconds per token for each question; draws correlate like the errors."""
        if not questions:
            return []
        departures, unknown = self._departures.predicted(Traits.of(questions, _LABELS, _FEATURES))
        levels = np.log(self.law_seconds(questions)) + departures
        same = numbered(questions)
        unknown += _NOISE**2 * (same[:, None] == same[None, :])
        factors = [
            self._calibration.factor(_calibration_features(question)) for question in questions
        ]
        at = np.arange(len(questions))
        forecasts = forecasts_of(levels, at, unknown, np.array(factors), questions[0].model)
        return [*map(Forecast.at_least, forecasts, map(least_training_seconds, questions))]

    def law_seconds(self, questions: Sequence[TrainingQuestion]) -> Vector:
        """Seconds per token [n] by the formula alone, without the Gaussian process."""
        return np.exp(Law(questions)(np.log(self.efficiencies)))


class Amounts(NamedTuple):
    """Numbers from which ``Law`` computes the seconds per token of a training.

    A step has as many operations on weights as ``question.passes`` forward passes. These fields are
    seconds per token of one device at its full rates, for all passes:

    - ``products``: matrix products with the weights.
    - ``attention``: attention at √(150 · bandwidth · peak rate in 16 bits) operations a second.
    - ``read``, ``unpacked``: reading the weights, and reading a byte for each quantised weight.
    - ``numbers``: reading (passes · layers · hidden) + (vocabulary / 3) activations of one byte.
    - ``moved``: sending weights or gradients, and tokens of experts, to other devices.

    ``layers`` is passes · the model's layers / tokens in a device's batch, times 0.3 in compiled
    software without experts. ``balance`` is the peak rate in 16 bits / bandwidth, relative to an
    A100. ``few_bits`` (fp8, fp4) and ``experts`` are 1 or 0. ``doublings`` is log2 of ``devices``.
    """

    products: float
    balance: float
    attention: float
    few_bits: float
    experts: float
    doublings: float
    layers: float
    read: float
    unpacked: float
    moved: float
    numbers: float
    devices: float


class Law:
    """The formula for the seconds per token of n trainings, one for each of ``questions``."""

    def __init__(self, questions: Sequence[TrainingQuestion]) -> None:
        amounts = [_amounts(question) for question in questions]
        self._columns = np.array(amounts, dtype=np.float64).T

    def __call__(self, logarithms: Vector) -> Vector:
        """Compute log(seconds per token) [n] from the logarithms of the `Efficiencies`."""
        share, amounts = Efficiencies(*np.exp(logarithms)), Amounts(*self._columns)
        products = amounts.products * amounts.balance**share.balance / share.eight**amounts.few_bits
        computed = (products + amounts.attention / share.attention) / share.products
        computed += amounts.numbers * share.traffic
        computed *= share.experts**amounts.experts * share.doubling**amounts.doublings
        busy = computed + amounts.read * share.weights + amounts.unpacked * share.unpacking
        # Weights and tokens are exchanged while others are multiplied.
        seconds = np.maximum(busy, amounts.moved / share.link) + amounts.layers * share.layer
        result: Vector = np.log(seconds / amounts.devices)
        return result


def least_training_seconds(question: TrainingQuestion) -> float:
    """Seconds per token if all operations of a training ran at the peak rates of its devices."""
    in_16_bits = chip_of(question.device, "bf16")
    attention = _attention_operations(question) / in_16_bits.products
    products = 2 * question.form.active_parameters * question.passes / _chip(question).products
    return (products + attention) / question.count


def _attention_operations(question: TrainingQuestion) -> float:
    # Causal attention computes half of all pairs forwards, and all of them backwards.
    form = question.form
    pairs_per_token = form.attended_pairs(question.length) / question.length
    return 2 * pairs_per_token * form.hidden * form.layers * (3 + question.recomputed)


def _chip(question: TrainingQuestion) -> Chip:
    # Weights of four bits are unpacked before they are multiplied.
    precision = "bf16" if question.method == "qlora" else question.precision
    return chip_of(question.device, precision, count=question.count // question.machines)


def _amounts(question: TrainingQuestion) -> Amounts:
    form, passes, tokens = question.form, question.passes, question.tokens
    quantised = question.method == "qlora"
    in_16_bits, chip = chip_of(question.device, "bf16"), _chip(question)
    any_tuning = not question.software and question.method != "pretraining"
    eager = any_tuning or question.software in _EAGER or form.experts > 0
    attention_rate = math.sqrt(in_16_bits.products * _OPERATIONS_PER_BYTE * chip.bandwidth)
    touched = min(form.parameters, 4 * form.active_parameters)
    return Amounts(
        products=2 * form.active_parameters * passes / chip.products,
        balance=in_16_bits.products / chip.bandwidth / _OPERATIONS_PER_BYTE,
        attention=_attention_operations(question) / attention_rate,
        few_bits=question.precision in {"fp8", "fp4"},
        experts=form.experts > 0,
        doublings=math.log2(question.count),
        layers=passes * form.layers / tokens * (1.0 if eager else _COMPILED_SHARE),
        read=passes * _BYTES * touched / chip.bandwidth / tokens,
        unpacked=quantised * passes * form.parameters / chip.bandwidth / tokens,
        moved=_seconds_to_move(question),
        numbers=(passes * form.layers * form.hidden + form.vocabulary / 3) / chip.bandwidth,
        devices=question.count,
    )


def _seconds_to_move(question: TrainingQuestion) -> float:
    """Seconds per token to exchange weights or gradients, and the inputs and outputs of experts."""
    link, network = _chip(question).link, question.network or math.inf
    machines = question.machines
    seconds = _seconds_at_rates(question, min(link, network), network * machines / question.count)
    if not (question.sharded and machines > 1 and question.method == "pretraining"):
        return seconds
    # Machines may also hold different layers, and send each other only a token's activations and
    # their gradients. With enough sequences in a step, no machine waits for another.
    sent = 2 * _BYTES * question.form.hidden * question.count / network
    return min(seconds, _seconds_at_rates(question, link, link) + sent)


def _seconds_at_rates(question: TrainingQuestion, rate: float, rate_of_device: float) -> float:
    """Seconds per token to send weights, and tokens to experts, at two rates in bytes a second."""
    form, count = question.form, question.count
    weights = question.passes * question.gathered_parameters if question.sharded else 0.0
    if question.network and not (question.sharded or question.frozen):
        # All-reduce: copies of the model send their gradients and receive the sums.
        weights = 2.0 * form.parameters
    seconds = _BYTES * weights / question.tokens / rate
    if not (question.sharded and form.expert_parameters):
        return seconds
    # In each layer, a token travels to its experts and back, and gradients travel likewise.
    travels = 2 * form.layers * form.experts_per_token * (2 + question.recomputed)
    sent = _BYTES * form.hidden * travels * (1 - 1 / count)
    return seconds + sent / min(_chip(question).link, rate_of_device)


# Traits of trainings; rows with equal traits depart from the law alike.
_LABELS: Mapping[str, Callable[[TrainingQuestion], Hashable]] = {
    "bits": lambda question: "bf16" if question.method == "qlora" else question.precision,
    "family": attrgetter("software"),
    "method": attrgetter("method"),
    "experts": lambda question: question.form.experts > 0,
    "chip": attrgetter("device.chip"),
    "device": attrgetter("device.id"),
    "model": attrgetter("form"),
    "length": attrgetter("length"),
}
_FEATURES: Mapping[str, Callable[[TrainingQuestion], float]] = {
    "tokens": lambda question: math.log(question.tokens),
    "size": lambda question: math.log(question.form.active_parameters),
    "attention": lambda question: math.log1p(
        question.length
        * question.form.hidden
        * question.form.layers
        / (3 * question.form.active_parameters)
    ),
}


def _calibration_features(question: TrainingQuestion) -> Vector:
    return np.array([1.5 * question.frozen, math.log2(question.count) / 2])
