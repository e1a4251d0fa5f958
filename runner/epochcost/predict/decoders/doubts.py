"""Find implausible published measurements of language models.

A measurement is implausible if it repeats an earlier row, needs more operations or bytes a second
than its devices can reach, or spends over a third of its time on the program's start-up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from epochcost.predict.decoders.rows import Precision, ServingQuestion, TokenRow
from epochcost.predict.decoders.training_rows import TrainingRow
from epochcost.specs.hardware import Device
from epochcost.statistics import group_by

# Operations for each parameter and token: two forwards, and two each backwards for the inputs and
# the weights; adapters need no gradients of the frozen weights.
_FORWARD, _WITH_INPUTS, _WITH_WEIGHTS = 2, 4, 6
# No real training comes closer to the peak of its devices.
_MOST_OF_THE_PEAK = 0.8
# A server may store keys and values in eight bits.
_LEAST_CACHE_BYTES = 1
# If this share of a program's rows in a table is impossible, its other rows are doubted too.
_SHARE_OF_A_TABLE = 0.5
# A run is doubted if its program's start takes a larger share of the time.
_MOST_OF_START = 1 / 3
# Sequences of one prompt, which select the same experts.
_SAME_PROMPT = "batched-bench"
# Columns in which two measurements with the same question may still differ.
_SETTINGS = ("date", "chip", "count", "tensor_parallel", "machine", "task", "file")
_FLOATS: frozenset[Precision] = frozenset({"fp8", "fp4"})
_EIGHT_BITS: frozenset[Precision] = frozenset({"fp8", "int8", "int4"})


def sound_rows(rows: Sequence[TokenRow]) -> tuple[TokenRow, ...]:
    """The plausible serving measurements, in their order."""
    doubts = doubted_token_rows(rows)
    return tuple(row for at, row in enumerate(rows) if at not in doubts)


def doubted_token_rows(rows: Sequence[TokenRow]) -> Mapping[int, str]:
    """Implausible serving measurements with the reasons, by index in ``rows``."""
    reasons = {at: reason for at, row in enumerate(rows) if (reason := _reason_if_impossible(row))}
    for places in group_by(range(len(rows)), lambda at: _program(rows[at])).values():
        impossible = [at for at in places if at in reasons]
        if len(impossible) >= _SHARE_OF_A_TABLE * len(places):
            reason = f"{len(impossible)} of {len(places)} rows of this program are impossible"
            reasons = dict.fromkeys(places, reason) | reasons
    for at, reason in (*_rows_with_start_up(rows), *_repeated_rows(rows)):
        reasons.setdefault(at, reason)
    return dict(sorted(reasons.items()))


def _program(row: TokenRow) -> Hashable:
    cells = row.line.cells
    return row.question.edition, cells["model"], cells["chip"], row.line.devices


def _repeated_rows(rows: Sequence[TokenRow]) -> Iterator[tuple[int, str]]:
    first_places: dict[Hashable, str] = {}
    for at, row in enumerate(rows):
        texts = (row.line.cells[name] for name in _SETTINGS)
        entry = (row.question, row.seconds, row.tokens_per_second, *texts)
        where = first_places.setdefault(entry, row.line.where)
        if where != row.line.where:
            yield at, f"the same as {where}"


def _rows_with_start_up(rows: Sequence[TokenRow]) -> Iterator[tuple[int, str]]:
    alike: dict[Hashable, dict[float, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, row in enumerate(rows):
        question = row.question
        if question.interleaved and question.output and row.seconds:
            shape = replace(question, prompt=question.prompt / question.output, output=1.0)
            alike[shape][question.output].append(at)
    # A batch takes at least in proportion to its lengths, so a line through the times of two
    # lengths should give zero or less at length zero.
    for places in alike.values():
        for length, longer in pairwise(sorted(places)):
            # Other runs of the longer texts may have no start.
            slowest = max(_batch_seconds(rows[at]) for at in places[longer])
            for at in places[length]:
                whole = _batch_seconds(rows[at])
                start = whole - (slowest - whole) / (longer - length) * length
                if start > _MOST_OF_START * whole:
                    yield at, f"the program's start took {start:.2g} of {whole:.2g} s: warm it up"


def _batch_seconds(row: TokenRow) -> float:
    # An interleaved row's seconds for each token include the reading of prompts.
    return row.question.output * (row.seconds or 0.0)


def doubted_training_rows(rows: Sequence[TrainingRow]) -> Mapping[int, str]:
    """Implausible training measurements with the reasons, by index in ``rows``."""
    doubts = {}
    for at, row in enumerate(rows):
        question = row.question
        operations = _WITH_INPUTS if question.frozen else _WITH_WEIGHTS
        needed = operations * question.form.active_parameters * row.tokens_per_second
        share = needed / (question.count * peak_flops(question.device, question.precision))
        if share > _MOST_OF_THE_PEAK:
            doubts[at] = f"needs {share:.2f} of the peak of its devices"
    return doubts


def peak_flops(device: Device, precision: Precision) -> float:
    """An upper bound of the operations a second that a device can compute at a precision.

    The bound allows for faster formats than the stated one, such as TF32 or 16 bits for fp32.
    """
    # Gaming devices sum in 16 bits twice as fast as the stated peak, as their int8 shows.
    eight = float(device.peak_int8_tops or 0)
    half = max(float(device.peak_fp16_tflops or device.peak_fp32_tflops or 0), eight / 2)
    if precision == "fp32":
        return max(half, float(device.peak_tf32_tflops or 0)) * 1e12
    if precision in _EIGHT_BITS:
        return max(2 * half, eight) * 1e12
    return (4 * half if precision == "fp4" else half) * 1e12


def _reason_if_impossible(row: TokenRow) -> str | None:
    device, count = row.question.device, row.line.devices
    if not isinstance(device, Device):
        return None
    peak = _least_operations_per_second(row) / peak_flops(device, row.question.precision)
    bandwidth = _least_bytes_per_second(row, device) / float(device.memory_gb_per_second) / 1e9
    for share, of in ((peak / count, "peak"), (bandwidth / count, "memory bandwidth")):
        if share > 1:
            return f"needs {share:.2f} of the {of} of its devices"
    return None


def _least_operations_per_second(row: TokenRow) -> float:
    if row.seconds is None:
        one = replace(row.question, sequences=1)
        return _operations_of_step(one) * (row.tokens_per_second or 0)
    return _operations_of_step(row.question) / row.seconds


def _least_bytes_per_second(row: TokenRow, device: Device) -> float:
    question = row.question
    if question.kind == "first":
        return 0.0
    if row.seconds is None:
        return _cached_bytes(question) * (row.tokens_per_second or 0)
    different = 1 if _SAME_PROMPT in row.line.cells["task"] else question.sequences
    return _bytes_of_step(question, device, row.line.devices, different) / row.seconds


def least_seconds(question: ServingQuestion) -> float:
    """Shortest possible time of a question's step, at the peak rates of its devices; 0 for CPUs."""
    device, count = question.device, question.count
    if not isinstance(device, Device):
        return 0.0
    peak = peak_flops(device, question.precision)
    if question.precision in _FLOATS:
        # Devices without such units multiply these weights in 16 bits.
        peak = min(peak, question.chip.products)
    arithmetic = _operations_of_step(question) / (count * peak)
    if question.kind == "first":
        return arithmetic
    read = _bytes_of_step(question, device, count, question.sequences)
    return max(arithmetic, read / (count * float(device.memory_gb_per_second) * 1e9))


def _operations_of_step(question: ServingQuestion) -> float:
    """The least operations to prefill all prompts, or to decode one token of each sequence.

    If ``interleaved``, a token also has 1 / ``output`` of a prompt's operations.
    """
    form, prompt = question.form, max(question.prompt - question.cached, 0)
    # Embeddings need no operations.
    looked_up = form.vocabulary * form.hidden
    reading = _FORWARD * max(0, form.active_parameters - 2 * looked_up) * prompt
    reading += _FORWARD * question.read_pairs * form.attention * form.layers
    if question.kind == "first":
        return reading * question.sequences
    per_token: float = _FORWARD * (form.active_parameters - looked_up)
    if question.interleaved and question.output:
        per_token += reading / question.output
    return per_token * question.sequences


def _bytes_of_step(
    question: ServingQuestion, device: Device, count: int, different: float
) -> float:
    """The least number of bytes that devices read to decode one token of each sequence.

    ``different`` is the number of sequences that choose their experts independently.
    """
    form = question.form
    read = (form.parameters - form.vocabulary * form.hidden) / form.parameters
    if form.experts:
        read = min(read, 1 - (1 - form.experts_per_token / form.experts) ** different)
    on_chip = float(device.cache_mib or 0) * 2**20 * count
    weights = max(0.0, question.weight_bytes * read - on_chip)
    return weights + question.sequences * _cached_bytes(question)


def _cached_bytes(question: ServingQuestion) -> float:
    context = question.form.kept_tokens(question.prompt + question.output / 2)
    return context * question.form.cached_numbers_per_token * _LEAST_CACHE_BYTES
