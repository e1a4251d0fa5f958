"""The command `onnxstep` writes files, prints a report and prints errors in one line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from activation_memory import peak_bytes
from exports import merged
from graph_text import model_of_text, run
from onnxstep.command import main

FAULTS = Path(__file__).parent / "faults"
MODEL = (
    "g (float[batch,4] x) => (float[batch,3] logits) "
    "<float[4,3] w = {1,2,3,4,5,6,7,8,9,1,2,3}> { logits = MatMul(x, w) }"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """An ONNX file with stored weights and a symbolic batch dimension."""
    path = tmp_path / "model.onnx"
    onnx.save(model_of_text(MODEL), path)
    return path


def onnxstep(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command `onnxstep` in this process."""
    command, code = ["onnxstep", *map(str, arguments)], 0
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", command)
        patch.setattr(warnings, "formatwarning", warnings.formatwarning)
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


def printed(*arguments: object) -> str:
    """The standard output of the command `onnxstep`, which must succeed."""
    process = onnxstep(*arguments)
    assert process.returncode == 0, process.stderr
    return process.stdout


def reported(*arguments: object) -> dict[str, Any]:
    """The report of the command `onnxstep` in JSON."""
    return json.loads(printed(*arguments, "--format", "json"))


def test_the_written_step_learns_from_the_written_values(model: Path, tmp_path: Path) -> None:
    """ONNX Runtime trains with only the written step and initial values, and the loss falls."""
    out = tmp_path / "step.onnx"
    report = reported(model, "--dim", "batch=8", "--optimizer", "momentum", "-o", out)
    rng = np.random.default_rng(0)
    feeds = dict(np.load(tmp_path / "step.initial.npz"))
    np.testing.assert_array_equal(feeds["w"].ravel()[:3], [1, 2, 3])
    feeds["x"] = rng.standard_normal((8, 4)).astype(np.float32)
    feeds[report["target"]] = rng.integers(0, 3, 8)
    feeds[report["learning_rate"]] = np.array(0.1, np.float32)
    losses = []
    for _ in range(30):
        got = run(onnx.load(out), feeds)
        losses.append(float(got[report["loss"]]))
        feeds |= {c["input"]: got[c["output"]] for c in report["carried"]}
    assert losses[-1] < losses[0] / 2


@pytest.mark.parametrize("name", ["file", "allow_pickle"])
def test_a_parameter_may_have_the_name_of_an_argument(name: str, tmp_path: Path) -> None:
    """The initial values are written even if numpy.savez has an argument with the same name."""
    source, out = tmp_path / "model.onnx", tmp_path / "step.onnx"
    onnx.save(model_of_text(MODEL.replace(" w", f" {name}")), source)
    printed(source, "--dim", "batch=8", "-o", out)
    assert np.load(tmp_path / "step.initial.npz").files == [name]


def test_bfloat16_is_written_as_its_bits(tmp_path: Path) -> None:
    """First values in bfloat16, which .npz files do not know, are in uint16; the report says so."""
    source, out = tmp_path / "model.onnx", tmp_path / "step.onnx"
    onnx.save(model_of_text(MODEL.replace("float[", "bfloat16[")), source)
    report = printed(source, "--dim", "batch=8", "-o", out)
    assert "step.initial.npz (bfloat16 as bits in uint16)." in report
    first = np.load(tmp_path / "step.initial.npz")["w"]
    assert first.dtype == np.uint16
    np.testing.assert_array_equal(first.ravel()[:3], [1, 2, 3])  # bits in ONNX's text, too


def test_a_step_larger_than_memory_is_one_line(model: Path, tmp_path: Path) -> None:
    """Adapters that do not fit into memory give exit code 3 and one line."""
    out = tmp_path / "step.onnx"
    process = onnxstep(model, "--dim", "batch=8", "--lora-rank", 2**50, "-o", out)
    assert process.returncode == 3
    assert process.stderr == "the step needs more memory than this machine has\n"


def test_the_report_names_what_is_carried(tmp_path: Path) -> None:
    """The report says which output feeds an input of --carry in the next step."""
    source, out = tmp_path / "model.onnx", tmp_path / "step.onnx"
    text = (
        "g (float[2,3] x, float[2,3] h0) => (float[2,3] hn) "
        "<float[3] w = {1,2,3}> { p = Mul(x, w) hn = Add(p, h0) }"
    )
    onnx.save(model_of_text(text), source)
    lines = printed(source, "--loss", "mse", "--carry", "h0=hn", "-o", out).splitlines()
    assert lines[-1] == "After each step feed every <name>.next as <name>, hn as h0."


def test_adapters_are_trained_alone(model: Path, tmp_path: Path) -> None:
    """With --lora-rank only adapters are trained; an unknown --lora-targets is an error."""
    out = tmp_path / "step.onnx"
    lora = ("--lora-rank", 2, "--lora-targets", "w*", "--lora-alpha", 4)
    report = reported(model, "--dim", "batch=8", *lora, "-o", out)
    assert report["trained"] == ["w.lora_A", "w.lora_B"]
    assert report["not_trained"] == {"w": "frozen"}
    missing = onnxstep(model, "--dim", "batch=8", *lora[:2], "--lora-targets", "v", "-o", out)
    assert missing.returncode == 1
    assert missing.stderr.startswith("lora target 'v' is unknown; choices are w")


def test_a_step_in_half_precision_begins_with_its_scale(model: Path, tmp_path: Path) -> None:
    """The initial values written for an fp16 step are fp32 and include the loss scale."""
    out = tmp_path / "step.onnx"
    printed(model, "--dim", "batch=8", "--precision", "fp16", "-o", out)
    first = np.load(tmp_path / "step.initial.npz")
    assert first["loss_scale"] == 65536
    assert {first[name].dtype for name in first.files} == {np.dtype(np.float32)}
    half = [
        value for value in onnx.load(out).graph.value_info if value.type.tensor_type.elem_type == 10
    ]
    assert "logits_float16" in {value.name for value in half}


def test_bf16_is_written_for_gpus_alone(model: Path, tmp_path: Path) -> None:
    """A bf16 step is refused unless it is for CUDA, since ONNX Runtime has no bf16 CPU kernels."""
    out = tmp_path / "step.onnx"
    arguments = (model, "--dim", "batch=8", "--precision", "bf16", "-o", out)
    for provider in ((), ("--provider", "cpu")):
        process = onnxstep(*arguments, *provider)
        assert process.returncode == 3
        assert "no bf16 kernel" in process.stderr
        assert not out.exists()
    assert onnxstep(*arguments, "--provider", "cuda").returncode == 0
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        run(onnx.load(out), {})


def test_nodes_without_a_cuda_kernel_are_counted(tmp_path: Path) -> None:
    """Only the report of a step for CUDA counts the nodes without a CUDA kernel."""
    source, out = tmp_path / "m.onnx", tmp_path / "step.onnx"
    text = (
        "g (float[9,4] x) => (float[9,4] y) <float[4] w = {1, 1, 1, 1}> { s = Mul(x, w) "
        "i = Cast <to = 6> (x) b = BitwiseAnd(i, i) f = Cast <to = 1> (b) y = Add(s, f) }"
    )
    onnx.save(model_of_text(text), source)
    arguments = (source, "--loss", "mse", "-o", out)
    assert "kernels" not in printed(*arguments)
    text = printed(*arguments, "--provider", "cuda")
    assert "have no CUDA kernel and would run on the CPU" in text
    assert "432 bytes each: 1 BitwiseAnd(int32, int32)" in text
    report = reported(*arguments, "--provider", "cuda")
    assert [node["size_bytes"] for node in report["cuda_kernels"]["on_host"]] == [432]


def test_segments_are_computed_again_for_less_memory(tmp_path: Path) -> None:
    """A deep model's step with --rematerialise sqrt has more nodes and smaller activations."""
    deep, weights = tmp_path / "deep.onnx", {"w": np.full((4, 4), 0.1, np.float32)}
    layers = " ".join(f"p{i} = MatMul(h{i}, w) h{i + 1} = Tanh(p{i})" for i in range(24))
    text = f"g (float[batch,4] h0) => (float[batch,4] y) {{ {layers} y = Neg(h24) }}"
    onnx.save(model_of_text(text, weights=weights), deep)
    steps = []
    for kind in ("none", "sqrt"):
        out = tmp_path / f"{kind}.onnx"
        printed(deep, "--dim", "batch=256", "--rematerialise", kind, "-o", out)
        steps.append(onnx.load(out))
    plain, again = steps
    assert len(again.graph.node) > len(plain.graph.node)
    assert peak_bytes(again) < 0.7 * peak_bytes(plain)


def test_words_for_people(model: Path, tmp_path: Path) -> None:
    """The report counts elements of parameters and optimizer state, and names the .npz file."""
    text = printed(model, "--dim", "batch=8", "--optimizer", "adadelta", "-o", tmp_path / "s.onnx")
    assert "12 numbers in 1 tensors" in text
    assert "24 numbers in 2 tensors" in text
    assert "s.initial.npz" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "batch"),
        (["--dim", "batch"], "name=value"),
        (["--dim", "batch=many"], "expected a size"),
        (["--dim", "batch=8", "--dim", "batch=9"], "'batch' twice"),
        (["--dim", "batch=8", "--wrt", "v*"], "--wrt 'v*' is unknown"),
        (["--dim", "batch=8", "--train", "v"], "--train 'v' is unknown"),
        (["--dim", "batch=8", "--carry", "x=logits"], "expected equal shapes"),
        (["--dim", "batch=8", "--optimizer", "sdg"], "did you mean 'sgd'"),
        (["--dim", "batch=8", "--seed", "-1", "--lora-rank", "2"], "seed: expected an integer"),
        (["--dim", "batch=8", "--lora-targets", "w"], "need --lora-rank"),
    ],
)
def test_mistakes_are_one_line(
    model: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    """An argument error that argparse does not find gives exit code 1 and one line on stderr.

    No step file is written. Errors that argparse finds give exit code 2.
    """
    process = onnxstep(model, *arguments, "-o", tmp_path / "step.onnx")
    assert process.returncode == 1
    assert message in process.stderr
    assert len(process.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "step.onnx").exists()


@pytest.mark.parametrize("content", [b"", b"not onnx at all", b"\x08\x0a\x12"])
def test_a_file_that_is_not_a_model(tmp_path: Path, content: bytes) -> None:
    """A file that is not a model gives a one-line error with the name of the file."""
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    process = onnxstep(path, "-o", tmp_path / "step.onnx")
    assert process.returncode == 1
    assert "bad.onnx" in process.stderr
    assert "Traceback" not in process.stderr


def test_the_model_is_not_overwritten(model: Path) -> None:
    """A destination that is the model itself is refused."""
    before = model.read_bytes()
    process = onnxstep(model, "--dim", "batch=8", "-o", model.parent / "." / model.name)
    assert process.returncode == 1
    assert "--out: expected another file than the model" in process.stderr
    assert model.read_bytes() == before


def test_an_output_name_without_onnx_is_a_usage_error(model: Path, tmp_path: Path) -> None:
    """A destination without the ending .onnx gives exit code 2."""
    assert onnxstep(model, "-o", tmp_path / "step.txt").returncode == 2


def test_what_serves_another_output_does_not_block(tmp_path: Path) -> None:
    """Nodes that compute only class labels do not prevent training by a loss of probabilities."""
    path = FAULTS / "sk_mlp.onnx"
    arguments = ("--output", "probabilities", "--loss", "nll", "--dim", "X[0]=4")
    printed(path, *arguments, "-o", tmp_path / "step.onnx")


def test_what_is_not_trained_is_named_and_can_be(tmp_path: Path) -> None:
    """The report lists a buffer as not trained, with the reason, unless --train names it."""
    source = FAULTS / "buffer_trained_False.onnx"
    arguments = (source, "--loss", "mse", "-o", tmp_path / "step.onnx")
    text = printed(*arguments)
    assert "parameters   20 numbers in 2 tensors\n    l.weight, l.bias\n" in text
    assert "not trained  16 numbers in 1 tensors\n    mask: the exporter says BUFFER\n" in text
    report = reported(*arguments, "--train", "mask")
    assert [carried["input"] for carried in report["carried"]] == ["l.weight", "l.bias", "mask"]
    assert report["not_trained"] == {}


def test_patterns_choose_and_doubts_are_said(tmp_path: Path) -> None:
    """--wrt and --freeze accept patterns of tensor names, and merged tensors give a warning.

    The exporter stored equal tensors of two layers only once. The report and stderr warn of this.
    """
    model, out = tmp_path / "merged.onnx", tmp_path / "step.onnx"
    onnx.save(merged(), model)
    arguments = (model, "--loss", "mse", "-o", out, "--wrt", "*.norm.*", "--freeze", "*.bias")
    command = [sys.executable, "-m", "onnxstep", *map(str, arguments), "--format", "json"]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    report = json.loads(process.stdout)
    assert report["trained"] == ["0.norm.weight", "1.norm.weight"]
    assert report["not_trained"] == dict.fromkeys(
        ["0.weight", "1.weight", "0.norm.bias", "1.norm.bias"], "frozen"
    )
    assert {*report["trained"]} == set(np.load(out.with_suffix(".initial.npz")))
    [warning] = report["warnings"]
    assert process.stderr == f"warning: {warning}\n"
    assert "1.norm.weight" in warning
