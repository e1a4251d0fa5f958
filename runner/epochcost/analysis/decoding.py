"""Where the time of a decoded token goes, beside the least that the machine's memory allows.

A step reads every weight once and the cache of each sequence. Those bytes over the fastest copy of
memory that was measured on the very host are the least time of both parts; the sum alone was timed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from epochcost.analysis.arithmetic import BYTES_PER_NUMBER, arithmetic_of_model
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.phases import PhaseTime, TimedDecoder
from epochcost.analysis.roofline import roofs_of_host
from epochcost.graphs.weight_bits import bytes_per_weight
from epochcost.specs.study import DECODER_WEIGHT_BITS, Precision

_HALF_BYTES = 2
_WEIGHT_BYTES: dict[Precision, float] = {
    "fp32": BYTES_PER_NUMBER, "fp16": _HALF_BYTES, "bf16": _HALF_BYTES,
    **{precision: bytes_per_weight(bits) for precision, bits in DECODER_WEIGHT_BITS.items()},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DecodedStep:
    """One timed step of decoding, and the least seconds that memory takes for what it reads."""

    decoder: TimedDecoder
    timed: PhaseTime
    weight_seconds: float
    cache_seconds: float

    @property
    def other_seconds(self) -> float:
        """What is left of the time; none where caches were faster than memory."""
        return max(float(self.timed.step.mean) - self.weight_seconds - self.cache_seconds, 0.0)

    @property
    def of_ceiling(self) -> float:
        """The least time over the time that it took; above 1 where caches helped."""
        return (self.weight_seconds + self.cache_seconds) / float(self.timed.step.mean)


def decoded_steps(inputs: Inputs, timed: TimedDecoder) -> Iterator[DecodedStep]:
    """Every decoding of a decoder on a host whose memory was measured; of others none."""
    model = inputs.catalogue.models[timed.model]
    counted = arithmetic_of_model(inputs.catalogue, model, inputs.cache)
    roofs = roofs_of_host(inputs, timed.machine)
    weight = _WEIGHT_BYTES.get(timed.precision)
    if counted is None or model.decoder is None or weight is None or not roofs:
        return
    rate = max(roof.bytes_per_second for roof in roofs)
    # Weights of few bits have half precision around them on a GPU.
    single = timed.precision == "fp32" or (
        timed.precision in DECODER_WEIGHT_BITS and timed.machine.device == "cpu"
    )
    number = BYTES_PER_NUMBER if single else _HALF_BYTES
    token = number * model.decoder.cached_numbers_per_token
    for one in timed.phases:
        if one.phase.name == "decode":
            cached = one.sequences * one.phase.tokens * token
            yield DecodedStep(timed, one, counted.read_whole * weight / rate, cached / rate)
