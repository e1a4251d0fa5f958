"""The law of decoders: how step time follows bandwidth, sequences and devices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.predict.decoders import rows
from epochcost.predict.decoders.chips import Chip, CpuForm
from epochcost.predict.decoders.forms import DecoderForm
from epochcost.predict.decoders.law import ON_DEVICES, SPREAD_ON_DEVICES, Law
from epochcost.predict.decoders.rows import Kind, ServingQuestion
from epochcost.predict.process import Vector

_DENSE = DecoderForm(32, 4096, 4096, 8_030_261_248, 8_030_261_248, 65536, 128256)
_EXPERTS = DecoderForm(48, 2048, 4096, 30_532_122_624, 3_353_032_704, 49152, 151936, 128, 8)
_CHIP = Chip(
    name="some", kind="some", maker="NVIDIA", generation="Hopper",
    bandwidth=3e12, memory=80 * 2.0**30, products=9e14, operations=6e13, power=700, unpacking=1,
    link=4.5e11, hops=1, cores=0, sockets=1,
)  # fmt: skip
_OLD = {"unpacking": 2, "unpacked_bytes": 4}
_QUESTION = ServingQuestion(
    form=_DENSE, model="some", software="vLLM", precision="bf16", weight_bytes=16e9,
    device=CpuForm("unused"), count=1, kind="token", prompt=1000, output=200, sequences=8,
    interleaved=True,
)  # fmt: skip
_FORMS = st.sampled_from((_DENSE, _EXPERTS))
_NONE = [0.0] * len(ON_DEVICES)
_SOFTWARE = st.sampled_from(("vLLM", "llama.cpp"))
_DEVIATIONS = st.lists(st.floats(-2, 2), min_size=len(ON_DEVICES), max_size=len(ON_DEVICES))


def _law(efficiencies: Vector, chip: Chip, question: ServingQuestion) -> float:
    with patch.object(rows, "chip_of", return_value=chip):
        law = Law([question])
    return float(np.exp(law(efficiencies))[0])


def _seconds(
    form: DecoderForm, chip: Chip, question: ServingQuestion, deviations: list[float]
) -> float:
    efficiencies = np.log(ON_DEVICES) + np.array(SPREAD_ON_DEVICES) * np.array(deviations)
    return _law(efficiencies, chip, replace(question, form=form))


@pytest.mark.parametrize(
    ("work", "chip", "split", "parts", "cache_bytes", "unpacking"),
    [
        ({"software": "vLLM", "precision": "int4"}, {}, 2, 1, 2, 1),
        ({"software": "vLLM", "form": _EXPERTS}, {}, 2, 1, 2, 0),
        ({"software": "TensorRT-LLM", "precision": "fp8"}, {}, 2, 1, 1, 0),
        # Prompts are read in parts of 512 tokens, and devices take turns.
        ({"software": "llama.cpp"}, {}, 1, 8 * 1025 / 512, 2, 0),
        ({"software": "llama.cpp", "precision": "int4"}, _OLD, 1, 8 * 1025 / 512, 2, 2),
        ({"software": "vLLM"}, {"cores": 64, "sockets": 2, "power": math.inf}, 2, 1, 2, 0),
    ],
    ids=["quantised", "experts", "cache in 8 bits", "llama.cpp", "old GPU", "processors"],
)
def test_times_by_hand(
    work: dict[str, Any],
    chip: dict[str, Any],
    split: int,
    parts: int,
    cache_bytes: int,
    unpacking: int,
) -> None:
    """A decoding step, a prefill, and a step with the prompts of others, by the formulas.

    Two devices serve 8 sequences; of each prompt of 1125 tokens the cache has 100.
    """
    question = replace(_QUESTION, count=2, prompt=1125, cached=100, **work)
    some, form, tokens = replace(_CHIP, **chip), question.form, 1025
    e = ON_DEVICES._replace(socket=0.6, core=0.8, threads=2e-7, narrow=200, between=0.7)
    clock = 1 if some.cores else 2**-e.clock
    turbo = 900 ** (e.core - 1) if some.cores else 1
    bandwidth = e.read * 3e12 * split * some.sockets**-e.socket
    vector = 6e13 * turbo * split
    slow = 1 / (e.ordinary * 10 * vector) + e.energy / (some.power * split)
    matrix = 1 / (1 / (e.products * 9e14 * turbo * split) + slow)
    expert = (form.parameters - form.active_parameters) / 120 if form.experts else 0

    def reading(read: float) -> float:
        untouched = form.experts * expert * (120 / 128) ** read
        return 16e9 * (1 - untouched / form.parameters) / bandwidth

    def exchange(sent: float) -> float:
        volume = 2 * 2 * (split - 1) / split * sent * form.hidden
        return 2 * form.layers * (e.hop + volume / (e.link * 4.5e11)) * (split > 1)

    waiting = form.layers * e.threads * some.cores
    step = reading(8) + form.layers * e.layer * clock + waiting + exchange(8)
    step += 8 * (1125 + 200 / 2) * cache_bytes * form.cached_numbers_per_token / bandwidth
    step += 2 * form.active_parameters * 8 / matrix + 8 * e.sequence * clock
    step += unpacking * form.active_parameters * e.weights / vector
    pairs = form.attention * form.layers * (1125**2 - 100**2)
    arithmetic = 2 * form.active_parameters * tokens + e.attention * 2 * pairs
    prompt = arithmetic * (1 + e.narrow / form.hidden) / matrix
    part = e.warm * 2 * form.active_parameters / matrix + waiting
    part += form.layers * e.prompt_layer * clock + reading(512 if parts > 1 else 8 * tokens)
    part += 2 * some.unpacked_bytes * form.parameters / bandwidth
    begin = parts * part + (0 if parts > 1 else e.start)
    wait = (8 * (e.between * prompt + exchange(tokens)) + begin) / 200
    for expected, asked in (
        (step, {"interleaved": False}),
        (step + wait, {}),
        (8 * prompt + begin + exchange(8 * tokens), {"kind": "first"}),
    ):
        got = _law(np.log(e), some, replace(question, **asked))
        assert got == pytest.approx(expected)


@given(
    form=_FORMS,
    deviations=_DEVIATIONS,
    kind=st.sampled_from(("first", "token")),
    split=st.sampled_from((1, 2, 8)),
    faster=st.floats(1, 10),
)
def test_more_bandwidth_takes_no_longer(
    form: DecoderForm, deviations: list[float], kind: Kind, split: int, faster: float
) -> None:
    """Prefill and decoding take no longer on a device with more bandwidth."""
    work = replace(_QUESTION, kind=kind, count=split)
    quick = replace(_CHIP, bandwidth=faster * _CHIP.bandwidth)
    slow = _seconds(form, _CHIP, work, deviations)
    assert _seconds(form, quick, work, deviations) <= slow * (1 + 1e-9)


@given(
    form=_FORMS,
    software=_SOFTWARE,
    deviations=_DEVIATIONS,
    kind=st.sampled_from(("first", "token")),
    sequences=st.floats(1, 2000),
    more=st.floats(1, 20),
    interleaved=st.booleans(),
)
def test_more_sequences_take_no_less_time(
    form: DecoderForm,
    software: str,
    deviations: list[float],
    kind: Kind,
    sequences: float,
    more: float,
    interleaved: bool,
) -> None:
    """Prompts or a step of more sequences take at least as long, even beyond the memory."""
    work = replace(_QUESTION, software=software, kind=kind, sequences=sequences)
    work = replace(work, interleaved=interleaved)
    fewer = _seconds(form, _CHIP, work, deviations)
    many = _seconds(form, _CHIP, replace(work, sequences=more * sequences), deviations)
    assert many >= fewer * (1 - 1e-9)


@given(
    form=_FORMS,
    software=_SOFTWARE,
    deviations=_DEVIATIONS,
    prompt=st.integers(1, 5000),
    more=st.integers(1, 100),
)
def test_longer_prompts_take_longer_without_jumps(
    form: DecoderForm, software: str, deviations: list[float], prompt: int, more: int
) -> None:
    """A longer prompt takes longer, by at most three times its share of more tokens."""
    work = replace(_QUESTION, kind="first", software=software, prompt=prompt)
    short = _seconds(form, _CHIP, work, deviations)
    long = _seconds(form, _CHIP, replace(work, prompt=prompt + more), deviations)
    assert short < long < short * (1 + 3 * more / prompt)


def test_sequences_beyond_the_memory_run_in_waves() -> None:
    """Beyond the memory, twice as many sequences take twice as long."""
    small = replace(_CHIP, memory=20 * 2.0**30)
    many = replace(_QUESTION, sequences=10_000)
    ratio = _seconds(_DENSE, small, replace(many, sequences=20_000), _NONE) / _seconds(
        _DENSE, small, many, _NONE
    )
    assert ratio == pytest.approx(2, rel=1e-6)
