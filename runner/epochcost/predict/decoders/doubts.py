"""Find published rows that are implausible: faster than the chip can be, or entered twice.

To decode a token, a device reads the weights and computes two operations for each parameter. It
cannot exceed the bandwidth and the peak in its spec. The limits are loose on purpose. The chip's
cache may contain a part of the weights. A server may store keys and values in eight bits. A model
with experts reads only those that its (random) routing selects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

from epochcost.predict.decoders.rows import Precision, TokenRow
from epochcost.predict.decoders.training_rows import TrainingRow
from epochcost.predict.learnt import Doubt
from epochcost.specs.hardware import Device

# Operations for each parameter and token: two forwards, and two each backwards for the inputs and
# the weights; adapters need no gradients of the frozen weights.
_FORWARD, _WITH_INPUTS, _WITH_WEIGHTS = 2, 4, 6
# No real training comes closer to the peak of its devices.
_MOST_OF_THE_PEAK = 0.8
_LEAST_CACHE_BYTES = 1
# If this share of a program's rows in a table is impossible, its other rows are doubted too.
_SHARE_OF_A_TABLE = 0.5
# Sequences of one prompt, which select the same experts.
_SAME_PROMPT = "batched-bench"
_EIGHT_BITS: frozenset[Precision] = frozenset({"fp8", "int8", "int4"})


def sound_rows(rows: Sequence[TokenRow]) -> tuple[TokenRow, ...]:
    """The plausible serving measurements, in their order."""
    doubts = doubted_token_rows(rows)
    return tuple(row for at, row in enumerate(rows) if at not in doubts)


def doubted_token_rows(rows: Sequence[TokenRow]) -> Mapping[int, Doubt]:
    """The reason why a serving measurement is implausible, by its index in ``rows``."""
    doubts = {at: Doubt(row.where, reason) for at, row in enumerate(rows) if (reason := _why(row))}
    for places in _tables(rows):
        impossible = [at for at in places if at in doubts]
        if len(impossible) >= _SHARE_OF_A_TABLE * len(places):
            for at in places:
                reason = f"{len(impossible)} of {len(places)} rows of this program are impossible"
                doubts.setdefault(at, Doubt(rows[at].where, reason))
    first_places: dict[Hashable, str] = {}
    for at, row in enumerate(rows):
        entry = (
            row.source, row.date, row.version, row.model, row.precision, row.chip, row.count,
            row.tensor_parallel, row.machine, row.task, row.kind, row.prompt, row.output,
            row.sequences, row.seconds, row.tokens_per_second, row.file,
        )  # fmt: skip
        if entry in first_places:
            doubts.setdefault(at, Doubt(row.where, f"the same as {first_places[entry]}"))
        first_places.setdefault(entry, row.where)
    return doubts


def sound_training_rows(rows: Sequence[TrainingRow]) -> tuple[TrainingRow, ...]:
    """The plausible training measurements, in their order."""
    doubts = doubted_training_rows(rows)
    return tuple(row for at, row in enumerate(rows) if at not in doubts)


def doubted_training_rows(rows: Sequence[TrainingRow]) -> Mapping[int, Doubt]:
    """The reason why a training measurement is implausible, by its index in ``rows``."""
    doubts = {}
    for at, row in enumerate(rows):
        if row.device is None or row.tokens_per_second is None:
            continue
        operations = _WITH_INPUTS if "lora" in row.method else _WITH_WEIGHTS
        needed = operations * row.form.active_parameters * row.tokens_per_second
        share = needed / (row.count * peak_flops(row.device, row.precision))
        if share > _MOST_OF_THE_PEAK:
            doubts[at] = Doubt(row.where, f"needs {share:.2f} of the peak of its devices")
    return doubts


def peak_flops(device: Device, precision: Precision) -> float:
    """Peak operations a second of a device in the fastest number format that a precision allows."""
    # Gaming devices sum in 16 bits twice as fast as the stated peak, as their int8 shows.
    eight = float(device.peak_int8_tops or 0)
    half = max(float(device.peak_fp16_tflops or device.peak_fp32_tflops or 0), eight / 2)
    if precision == "fp32":
        return max(half, float(device.peak_tf32_tflops or 0)) * 1e12
    if precision in _EIGHT_BITS:
        return max(2 * half, eight) * 1e12
    return (4 * half if precision == "fp4" else half) * 1e12


def _why(row: TokenRow) -> str | None:
    """The reason why no device of this kind can reach a row's rate; None if one can."""
    if row.device is None:
        return None
    peak = _operations(row) / (row.count * peak_flops(row.device, row.precision))
    if peak > 1:
        return f"needs {peak:.2f} of the peak of its devices"
    bandwidth = _bytes(row, row.device)
    bandwidth /= row.count * float(row.device.memory_gb_per_second) * 1e9
    return (
        f"needs {bandwidth:.2f} of the memory bandwidth of its devices" if bandwidth > 1 else None
    )


def _operations(row: TokenRow) -> float:
    """The fewest operations a second that a device needs to reach a row's rate.

    Embeddings are looked up instead of multiplied, and the scores of the vocabulary are computed
    for only one token of a prompt.
    """
    form = row.form
    looked_up = form.vocabulary * form.hidden
    per_prompt_token = _FORWARD * max(0, form.active_parameters - 2 * looked_up)
    if row.kind == "first":
        assert row.seconds is not None
        return per_prompt_token * row.prompt * (row.sequences or 1) / row.seconds
    per_token: float = _FORWARD * (form.active_parameters - looked_up)
    if row.interleaved and row.output:
        per_token += per_prompt_token * row.prompt / row.output
    return per_token * _tokens_per_second(row)


def _bytes(row: TokenRow, device: Device) -> float:
    """The fewest bytes (weights, keys, values) that a device reads a second at a row's rate."""
    if row.kind == "first":
        return 0.0
    form, sequences = row.form, row.sequences
    context = row.prompt + row.output / 2
    cached = context * form.cached_numbers_per_token * _LEAST_CACHE_BYTES
    if sequences is None or row.seconds is None:
        return cached * _tokens_per_second(row)
    read = (form.parameters - form.vocabulary * form.hidden) / form.parameters
    if form.experts:
        different = 1 if _SAME_PROMPT in row.task else sequences
        touched = 1 - (1 - form.experts_per_token / form.experts) ** different
        read = min(read, touched)
    cache_bytes = float(device.cache_mib or 0) * 2**20 * row.count
    weights = max(0.0, row.weight_bytes * read - cache_bytes)
    return (weights + sequences * cached) / row.seconds


def _tokens_per_second(row: TokenRow) -> float:
    if row.sequences is None or row.seconds is None:
        return row.tokens_per_second or 0.0
    return row.sequences / row.seconds


def _tables(rows: Sequence[TokenRow]) -> Iterator[list[int]]:
    """Group the indices of rows by source, software version, model, chip and number of chips."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for at, row in enumerate(rows):
        places[row.source, row.version, row.model, row.chip, row.count].append(at)
    return iter(places.values())
