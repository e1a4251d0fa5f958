"""The parts of a decoded token's time, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from analysis.test_tokens import project
from epochcost.analysis.decoding import DecodedStep, decoded_steps
from epochcost.analysis.inputs import read_inputs
from epochcost.analysis.phases import timed_decoders
from epochcost.results.ceilings import write_ceilings
from kept_ceilings import make_ceilings
from onnxstep.graphs.parameters import parameter_count
from report_project import make_result
from tiny_decoders import HEADS, LAYERS, SHARED, WIDTH, tiny_decoder


def steps(root: Path, *, ceilings: bool = True) -> list[DecodedStep]:
    """The decoded steps of a project whose host copies 12 GB/s."""
    catalogue = project(root)
    onnx.save(tiny_decoder(), str(root / "models/tiny.onnx"))
    folder = root / "docs/data/results"
    if ceilings:
        write_ceilings(folder, make_ceilings(make_result().environment))
    inputs = read_inputs(catalogue, [folder], root / "docs")
    (timed,) = timed_decoders(inputs)
    return list(decoded_steps(inputs, timed))


def test_bytes_over_the_fastest_copy_are_the_least_time(tmp_path: Path) -> None:
    """Weights once, the cache of four sequences of 200 tokens, and the rest of 0.4 s."""
    found = {(one.timed.sequences, one.timed.phase.tokens): one for one in steps(tmp_path)}
    assert len(found) == 4, "prefill is not bound by memory"
    rate = 1.2e10 / 0.98
    one = found[4, 200]
    cached = 4 * 200 * 4 * 2 * LAYERS * SHARED * (WIDTH // HEADS)
    assert one.cache_seconds == pytest.approx(cached / rate)
    weights = 4 * parameter_count(tiny_decoder()) / rate
    assert one.weight_seconds == pytest.approx(weights, rel=0.1)
    assert one.weight_seconds == found[1, 100].weight_seconds
    least = one.weight_seconds + one.cache_seconds
    assert least + one.other_seconds == pytest.approx(0.4)
    assert one.of_ceiling == pytest.approx(least / 0.4)


def test_a_host_without_ceilings_has_no_parts(tmp_path: Path) -> None:
    """Nothing is computed by another machine's memory."""
    assert steps(tmp_path, ceilings=False) == []
