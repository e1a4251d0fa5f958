"""Compute a language model's times from the bytes that it reads, its operations and fixed times.

To decode one token of each of c sequences takes

    (weights read + c · context · cache) / (split · e · bandwidth) + layers · τ
    + 2 · active · c / (split · ef · peak) + active · w / (split · operations) + c · s + exchange

seconds, and the prefill of n tokens takes

    (2 · active · n + 2 · a · pairs · width · layers) / (split · ef · peak) + layers · τp
    + weights read / (split · e · bandwidth) + t0 + exchange.

"weights read" are bytes of weights. The model uses ``active`` parameters for a token, and stores
``cache`` bytes for each token of the ``context``. ``pairs`` counts each (query, key) pair twice; it
is n² if tokens attend to all earlier ones. ``width`` is that of all attention heads. ``split``
devices share each layer, and exchange results in the time ``exchange``. ``peak`` and ``operations``
are operations a second, of the matrix and of the vector units. The other symbols are fields of
`Efficiencies`: e (``read``), ef (``products``), τ (``layer``), s (``sequence``), τp
(``prompt_layer``), t0 (``start``), w (``weights``, 0 if not quantised) and a (``attention``).

Products also take vector operations (``ordinary``) and energy (``energy``). llama.cpp reads prompts
in parts of 512 tokens, and each part takes all times above but t0. On old GPUs, a part also writes
and reads all weights as floats of ``unpacked_bytes``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from epochcost.predict.decoders.chips import ARM
from epochcost.predict.decoders.rows import ServingQuestion
from epochcost.predict.process import Vector

# llama.cpp reads a prompt in parts of this many tokens, and devices work on its layers in turn.
_PART_OF_PROMPT = 512
_LAYERS_BY_TURNS = "llama.cpp"
# Share of the memory for weights and cache.
USABLE_MEMORY = 0.9
BYTES_OF_16_BITS = 2.0
# Reference rates of the exponents of clock and cores.
_ORDINARY_OPERATIONS = 3e13
_ORDINARY_PRODUCTS = 1e12
# Products of matrix units in the time of an operation of ordinary units, unless fitted otherwise.
_PRODUCTS_AN_OPERATION = 10


class Efficiencies(NamedTuple):
    """Parameters of the formula for serving times, fitted for each software.

    - ``read``, ``products``, ``link``: reached shares of memory, matrix-unit and link rates.
    - ``ordinary``: 10 · ``ordinary`` matrix operations also cost one vector operation's time.
    - ``weights``: vector operations to unpack a quantised weight.
    - ``layer``, ``sequence``: seconds that each layer and each sequence add to a decoding step.
    - ``prompt_layer``, ``start``: seconds that each layer and the start add to a prefill.
    - ``hop``: seconds that a transfer between two devices spends on each link.
    - ``threads``: seconds that each core of a processor adds to each layer.
    - ``attention``: how many times as long an operation takes in attention as elsewhere.
    - ``energy``: joules of a matrix operation, which the power limit pays for.
    - ``warm``, ``narrow``: prompt length and hidden width at which matrix units reach half speed.
    - ``between``: share of a prefill's computing time for which tokens of other requests wait.
    - ``clock``: ``layer``, ``prompt_layer`` and ``sequence`` of devices are divided by (vector
      operations a second / 3e13) to this power.
    - ``socket``: the bandwidth of n sockets is divided by n to this power.
    - ``core``: the rate of processors whose clock falls with the number of busy cores is
      proportional to (peak rate) to this power.
    """

    read: float
    layer: float
    products: float
    prompt_layer: float
    start: float
    sequence: float
    hop: float
    link: float
    warm: float
    between: float
    clock: float
    weights: float
    ordinary: float
    narrow: float
    socket: float
    core: float
    threads: float
    attention: float
    energy: float


# Priors of an unknown software on devices and on processors: expected efficiencies, and standard
# deviations of their logarithms.
ON_DEVICES = Efficiencies(
    0.85, 6e-5, 0.9, 2e-4, 4e-3, 3e-5, 1.2e-5, 0.5, 40, 0.9, 0.25, 1.5, 3, 150, 0.5, 1, 1e-6, 1.5,
    3e-13,
)  # fmt: skip
SPREAD_ON_DEVICES = Efficiencies(
    0.25, 0.5, 0.4, 0.8, 1, 1, 0.7, 0.5, 0.7, 0.25, 0.4, 0.8, 1, 1, 0.01, 0.001, 0.01, 0.4, 1
)
ON_PROCESSORS = Efficiencies(
    0.6, 1e-4, 0.4, 1e-4, 1e-2, 1e-4, 1.2e-5, 0.5, 5, 0.9, 0.01, 1, 4, 50, 0.7, 0.85, 1e-6, 1.5,
    3e-13,
)  # fmt: skip
SPREAD_ON_PROCESSORS = Efficiencies(
    0.4, 1, 0.4, 0.8, 1, 1.5, 0.7, 0.5, 0.7, 0.25, 0.01, 1, 1, 1, 0.5, 0.15, 1.5, 0.4, 0.01
)


class Law:
    """The formula for serving times, for n ``questions`` about prefills or decoding steps.

    Attributes are arrays [n]. ``expert`` counts the weights of an expert, ``split`` the devices
    that share each layer. ``part`` is the most tokens of a prompt that are read at once.
    """

    def __init__(self, questions: Sequence[ServingQuestion]) -> None:
        self._questions = questions
        self.layers = self._column(lambda question: question.form.layers)
        self.context = self._column(
            lambda question: question.form.kept_tokens(question.prompt + _output(question) / 2)
        )
        self.kept = self._column(
            lambda question: question.form.kept_tokens(question.prompt + _output(question))
        )
        self.pairs = self._column(attrgetter("read_pairs"))
        self.hidden = self._column(lambda question: question.form.hidden)
        self.attention = self._column(lambda question: question.form.attention)
        self.parameters = self._column(lambda question: question.form.parameters)
        self.active = self._column(lambda question: question.form.active_parameters)
        self.experts = self._column(lambda question: question.form.experts)
        self.experts_per_token = self._column(lambda question: question.form.experts_per_token)
        spare = np.maximum(self.experts - self.experts_per_token, 1)
        self.expert = np.where(self.experts > 0, (self.parameters - self.active) / spare, 0)
        self.bandwidth = self._column(attrgetter("chip.bandwidth"))
        self.products = self._column(attrgetter("chip.products"))
        self.operations = self._column(attrgetter("chip.operations"))
        self.power = self._column(attrgetter("chip.power"))
        self.link = self._column(attrgetter("chip.link"))
        self.hops = self._column(attrgetter("chip.hops"))
        self.cores = self._column(attrgetter("chip.cores"))
        # The clocks of Arm's processors do not fall with the number of busy cores.
        of_arm = self._column(lambda question: question.chip.maker == ARM)
        self.turbo = (self.cores > 0) * (1 - of_arm)
        self.sockets = self._column(attrgetter("chip.sockets"))
        quantised = self._column(lambda question: question.precision.startswith("int"))
        self.unpacking = quantised * self._column(attrgetter("chip.unpacking"))
        self.unpacked_bytes = quantised * self._column(attrgetter("chip.unpacked_bytes"))
        self.memory = self._column(lambda question: question.chip.memory * question.count)
        self.cache_bytes = self._column(_cache_bytes_per_token)
        self.weight_bytes = self._column(lambda question: question.weight_bytes)
        turns = self._column(lambda question: question.software.startswith(_LAYERS_BY_TURNS))
        self.split = np.where(turns > 0, 1, self._column(lambda question: question.count))
        self.part = np.where(turns > 0, _PART_OF_PROMPT, math.inf)
        self.prompt = self._column(lambda question: question.prompt)
        self.cached = np.minimum(self._column(lambda question: question.cached), self.prompt)
        self.output = self._column(_output)
        self.sequences = self._column(lambda question: max(question.sequences, 1.0))
        self.token = self._column(lambda question: question.kind == "token")
        self.interleaved = self._column(lambda question: question.interleaved)

    @property
    def columns(self) -> list[Vector]:
        """The inputs of the formula: an array [n] for each property of the n questions."""
        return [value for value in vars(self).values() if isinstance(value, np.ndarray)]

    def _column(self, number: Callable[[ServingQuestion], float]) -> Vector:
        return np.array([*map(number, self._questions)], dtype=np.float64)

    def __call__(self, efficiencies: Vector) -> Vector:
        """Logarithms of each question's seconds [n], given those of the `Efficiencies`."""
        # Whatever the efficiencies, more bandwidth never makes a step slower, and more sequences
        # never make it faster.
        seconds, s = _PhaseSeconds(self, efficiencies), self
        cache = np.maximum(s.kept * s.cache_bytes, 1)
        fitting = np.maximum((USABLE_MEMORY * s.memory - s.weight_bytes) / cache, 1)
        wave = np.minimum(s.sequences, fitting)
        step = seconds.decoding_step(wave) + s.interleaved * seconds.prompt_wait_per_token(wave)
        token = step * s.sequences / wave
        return np.log(np.where(s.token > 0, token, seconds.prefill_of_all()))


def _output(question: ServingQuestion) -> float:
    return max(question.output, 1.0)


def _cache_bytes_per_token(question: ServingQuestion) -> float:
    # By default, TensorRT-LLM then stores keys and values in eight bits.
    halved = question.software == "TensorRT-LLM" and question.precision in ("fp8", "fp4")
    numbers = question.form.cached_numbers_per_token
    return numbers * (BYTES_OF_16_BITS / 2 if halved else BYTES_OF_16_BITS)


class _PhaseSeconds:
    """Seconds [n] of a law's prefills and decoding steps; ``efficiencies`` are logarithms."""

    def __init__(self, law: Law, efficiencies: Vector) -> None:
        self._s = s = law
        e = Efficiencies(*np.exp(efficiencies))
        # No software reaches more than the peak rates.
        e = e._replace(read=np.minimum(e.read, 1.0), products=np.minimum(e.products, 1.0))
        self._e = e
        processor = np.greater(s.cores, 0)
        clock = np.where(processor, 1.0, (s.operations / _ORDINARY_OPERATIONS) ** -e.clock)
        cores = (s.products / _ORDINARY_PRODUCTS) ** (s.turbo * (e.core - 1))
        self._waiting = s.layers * e.threads * s.cores
        self._bandwidth = e.read * s.bandwidth * s.split * s.sockets**-e.socket
        self._operations = s.operations * cores * s.split
        slow = 1 / (e.ordinary * _PRODUCTS_AN_OPERATION * self._operations)
        limited_by_power = e.energy / (s.power * s.split)
        fast = 1 / (e.products * s.products * cores * s.split)
        self._products = 1 / (fast + slow + limited_by_power)
        self._layer, self._prompt_layer = e.layer * clock, e.prompt_layer * clock
        self._sequence = e.sequence * clock

    def decoding_step(self, sequences: Vector) -> Vector:
        s = self._s
        cache = sequences * s.context * s.cache_bytes / self._bandwidth
        products = 2 * s.active * sequences / self._products
        weights = s.unpacking * s.active * self._e.weights / self._operations
        layers = s.layers * self._layer + self._waiting
        fixed = self._weight_reading(sequences) + layers + weights
        spent = fixed + cache + products + self._sequence * sequences
        return spent + self._reductions_between_devices(sequences)

    def prefill_of_all(self) -> Vector:
        s = self._s
        tokens = s.sequences * (s.prompt - s.cached)
        alone = s.sequences * self._prompt_arithmetic() + self._prefill_overhead(tokens)
        return alone + self._reductions_between_devices(tokens)

    def prompt_wait_per_token(self, sequences: Vector) -> Vector:
        s = self._s
        read = s.prompt - s.cached
        reductions = self._reductions_between_devices(read)
        prompts = self._e.between * self._prompt_arithmetic() + reductions
        return (sequences * prompts + self._prefill_overhead(sequences * read)) / s.output

    def _prompt_arithmetic(self) -> Vector:
        s = self._s
        # Narrow models multiply slower.
        products = 2 * s.active * (s.prompt - s.cached)
        attention = self._e.attention * 2 * s.pairs * s.attention * s.layers
        return (products + attention) * (1 + self._e.narrow / s.hidden) / self._products

    def _prefill_overhead(self, tokens: Vector) -> Vector:
        s = self._s
        parts = np.maximum(tokens / s.part, 1.0)
        products = self._e.warm * 2 * s.active / self._products
        layers = s.layers * self._prompt_layer + self._waiting
        start = np.where(np.isfinite(s.part), 0.0, self._e.start)
        read = self._weight_reading(np.minimum(tokens, s.part))
        unpacked = 2 * s.unpacked_bytes * s.parameters / self._bandwidth
        return parts * (products + layers + read + unpacked) + start

    def _weight_reading(self, tokens: Vector) -> Vector:
        s = self._s
        untouched = (1 - s.experts_per_token / np.maximum(s.experts, 1)) ** tokens
        share = 1 - s.experts * untouched * s.expert / s.parameters
        return s.weight_bytes * share / self._bandwidth

    def _reductions_between_devices(self, tokens: Vector) -> Vector:
        s = self._s
        # Devices with split weights reduce twice in each layer.
        volume = 2 * BYTES_OF_16_BITS * (s.split - 1) / s.split * tokens * s.hidden
        hop = self._e.hop * s.hops
        seconds = 2 * s.layers * (hop + volume / (self._e.link * s.link))
        return np.where(s.split > 1, seconds, 0.0)
