"""The law of decoders: how step time follows bandwidth, sequences and devices."""

from __future__ import annotations

import math
from dataclasses import replace
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

_DENSE = DecoderForm(32, 4096, 4096, 8_030_261_248, 8_030_261_248, 65536, 128256)
_EXPERTS = DecoderForm(48, 2048, 4096, 30_532_122_624, 3_353_032_704, 49152, 151936, 128, 8)
_CHIP = Chip(
    name="some", kind="some", maker="NVIDIA", generation="Hopper",
    bandwidth=3e12, memory=80 * 2.0**30, products=9e14, operations=6e13, unpacking=1, link=4.5e11,
    hops=1, cores=0, sockets=1,
)  # fmt: skip
_QUESTION = ServingQuestion(
    form=_DENSE, model="some", software="vLLM", precision="bf16", weight_bytes=16e9,
    device=CpuForm("unused"), count=1, kind="token", prompt=1000, output=200, sequences=8,
    interleaved=True,
)  # fmt: skip
_FORMS = st.sampled_from((_DENSE, _EXPERTS))
_NONE = [0.0] * len(ON_DEVICES)
_DEVIATIONS = st.lists(st.floats(-2, 2), min_size=len(ON_DEVICES), max_size=len(ON_DEVICES))


def _seconds(
    form: DecoderForm, chip: Chip, question: ServingQuestion, deviations: list[float]
) -> float:
    efficiencies = np.log(ON_DEVICES) + np.array(SPREAD_ON_DEVICES) * np.array(deviations)
    with patch.object(rows, "chip_of", return_value=chip):
        law = Law([replace(question, form=form)])
    return float(np.exp(law(efficiencies))[0])


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
    deviations=_DEVIATIONS,
    sequences=st.floats(1, 2000),
    more=st.floats(1, 20),
    interleaved=st.booleans(),
)
def test_more_sequences_take_no_less_time(
    form: DecoderForm, deviations: list[float], sequences: float, more: float, interleaved: bool
) -> None:
    """A step of more sequences takes at least as long, even beyond the memory."""
    work = replace(_QUESTION, sequences=sequences, interleaved=interleaved)
    fewer = _seconds(form, _CHIP, work, deviations)
    many = _seconds(form, _CHIP, replace(work, sequences=more * sequences), deviations)
    assert many >= fewer * (1 - 1e-9)


def test_sequences_beyond_the_memory_run_in_waves() -> None:
    """Beyond the memory, twice as many sequences take twice as long."""
    small = replace(_CHIP, memory=20 * 2.0**30)
    many = replace(_QUESTION, sequences=10_000)
    ratio = _seconds(_DENSE, small, replace(many, sequences=20_000), _NONE) / _seconds(
        _DENSE, small, many, _NONE
    )
    assert ratio == pytest.approx(2, rel=1e-6)


def test_experts_are_read_that_the_tokens_touch() -> None:
    """One token of a mixture of experts reads few experts; many tokens read nearly all."""
    plain = replace(_QUESTION, interleaved=False, prompt=1, output=1, weight_bytes=60e9)
    single = _seconds(_EXPERTS, _CHIP, replace(plain, sequences=1), _NONE)
    many = _seconds(_EXPERTS, _CHIP, replace(plain, sequences=256), _NONE)
    assert single < 60e9 / _CHIP.bandwidth < many


def test_layers_of_llama_cpp_take_turns() -> None:
    """In llama.cpp one sequence decodes on one device at a time, so four are no faster."""
    work = replace(_QUESTION, software="llama.cpp", sequences=1, interleaved=False)
    four = replace(work, count=4)
    assert _seconds(_DENSE, _CHIP, work, _NONE) == pytest.approx(
        _seconds(_DENSE, _CHIP, four, _NONE)
    )


def test_splitting_a_model_exchanges_its_hidden_states() -> None:
    """Two devices with a slow link take longer than two with a fast one."""
    work = replace(_QUESTION, count=2, kind="first")
    slow = replace(_CHIP, link=1e10, hops=2)
    assert _seconds(_DENSE, slow, work, _NONE) > _seconds(_DENSE, _CHIP, work, _NONE)


def test_a_long_prompt_costs_more_than_its_share() -> None:
    """Attention grows with the square of the prompt."""
    work = replace(_QUESTION, kind="first", sequences=1)
    short, long = (
        _seconds(_DENSE, _CHIP, replace(work, prompt=tokens), _NONE) for tokens in (10_000, 100_000)
    )
    assert math.log10(long / short) > 1
