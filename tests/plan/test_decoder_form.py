"""A decoder's spec against its graph: the wrong key, the graph's value, and the key's place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from built_decoders import built_decoder, save_built
from epochcost.execute.planning import plan_run
from epochcost.plan.binding import misfits, phase_sizes
from epochcost.plan.make import RunRequest
from epochcost.plan.work import Phase
from epochcost.specs.decoder import Decoder
from epochcost.specs.loader import load_catalogue
from tiny_decoders import CONTEXT, DECODER_SPEC, tiny_decoder
from tiny_project import write_tiny_project

DECODER = Decoder(
    layers=2, heads=4, key_value_heads=2, head_size=16, vocabulary=97, context=CONTEXT,
    generation={"prompts": (8,), "contexts": (8,)},
)  # fmt: skip


def said(model: onnx.ModelProto, **other: int) -> str:
    """The first misfit of the decoder with other values."""
    return str(next(misfits(model, DECODER.model_copy(update=other)), ""))


@pytest.mark.parametrize("model", [tiny_decoder(), built_decoder(), built_decoder(four_bits=True)])
def test_a_form_that_fits(model: onnx.ModelProto) -> None:
    """Files of epochcost and of the builder fit their specs, and all sizes follow from the spec."""
    assert not said(model)
    sizes = phase_sizes(model, DECODER, 3, Phase(name="decode", tokens=8))
    assert sizes["batch_size"] == 3
    assert (sizes["sequence_length"], sizes["total_sequence_length"]) == (1, 9)
    assert sizes["past_sequence_length"] == 9
    assert sizes.get("kv_cache_dim", 16) == 16


@pytest.mark.parametrize("four_bits", [False, True])
@pytest.mark.parametrize(
    ("key", "wrong", "words"),
    [
        ("layers", 3, "should be 2, got 3: the graph has no input 'past_key_values.2.key'"),
        ("layers", 1, "should be 2, got 1: the graph has an input 'past_key_values.1.key' too"),
        ("heads", 8, "should be 4, as 'layers.0.attended' has it, got 8"),
        ("key_value_heads", 4, "should be 2, as 'past_key_values.0.key' has it, got 4"),
        ("head_size", 32, "should be 16, as 'layers.0.attended' has it, got 32"),
        ("vocabulary", 98, "should be 97, as 'logits' has it, got 98"),
        ("context", 512, "should be 256, as 'cosines' has it, got 512"),
    ],
)
def test_a_key_that_the_graph_contradicts(
    key: str, wrong: int, words: str, four_bits: bool
) -> None:
    """The message names the key and the graph's value."""
    assert said(built_decoder(four_bits=four_bits), **{key: wrong}) == f"decoder.{key}: {words}"


def renamed(old: str, new: str) -> onnx.ModelProto:
    """A built decoder with an input or output of another name."""
    model = built_decoder()
    for value in [*model.graph.input, *model.graph.output]:
        value.name = value.name.replace(old, new)
    return model


def in_half(model: onnx.ModelProto) -> onnx.ModelProto:
    """The decoder with a cache in half precision."""
    for value in model.graph.input:
        if value.name.startswith("past"):
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model


def with_more(model: onnx.ModelProto) -> onnx.ModelProto:
    """The decoder with an unknown input."""
    model.graph.input.append(helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [1]))
    return model


def of_eight_bits(model: onnx.ModelProto) -> onnx.ModelProto:
    """The decoder with one product of 8 bits, as mixed files have."""
    node = next(node for node in model.graph.node if node.op_type == "MatMulNBits")
    next(entry for entry in node.attribute if entry.name == "bits").i = 8
    return model


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (renamed("past_key_values.0.key", "cache_0"), "an input 'past_key_values.0.key', got"),
        (renamed("past_key_values.1.value", "cache_1"), "an input 'past_key_values.1.value', has"),
        (renamed("present.0.key", "new_0"), "an output 'present.0.key', has none"),
        (with_more(built_decoder()), "no inputs but input_ids, attention_mask, position_ids"),
        (in_half(built_decoder()), "past_key_values.0.key in FLOAT16: build it with -p fp32"),
        (of_eight_bits(built_decoder(four_bits=True)), "got some of 8 bits: build it with"),
    ],
)
def test_a_graph_of_another_form(model: onnx.ModelProto, words: str) -> None:
    """The message names the tensor and the page on exporting such a file."""
    line = said(model)
    assert line.startswith("graph: should")
    assert words in line


def test_the_place_is_said(tmp_path: Path) -> None:
    """`epochcost check` and a run name file, line and column of the key, with no traceback."""
    root = write_tiny_project(tmp_path)
    save_built(built_decoder(), root / "models/tiny.onnx")
    spec = DECODER_SPEC.replace("layers = 2", "layers = 3")
    (root / "specs/models/tiny.toml").write_text(spec)
    line = spec[: spec.index("layers")].count("\n") + 1
    place = f"specs/models/tiny.toml:{line}:1: decoder.layers: should be 2, got 3: the graph has "
    done = subprocess.run(
        [sys.executable, "-m", "epochcost", "check"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, f"{place}no input 'past_key_values.2.key'\n")
    plan = plan_run(load_catalogue(root), RunRequest(models=("tiny",), providers=("cpu",)))
    assert not plan.trials
    assert place in next(left.reason for left in plan.left_out if left.what == "tiny")
