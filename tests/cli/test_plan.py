"""`epochcost plan`: the trials, and the nodes without a CUDA kernel."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto
from typer.testing import CliRunner

from epochcost.cli.app import app
from epochcost.errors import CapabilityError, InputError
from onnxstep.graphs.cuda_kernels import KernelCheck
from tiny_decoders import DECODER_SPEC
from tiny_project import price_text, write_tiny_project
from usable_providers import usable_providers


@pytest.fixture(autouse=True)
def in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every test here in a tiny project."""
    monkeypatch.chdir(write_tiny_project(tmp_path / "project"))


def plan(*arguments: str) -> str:
    """The output of `epochcost plan` with these arguments."""
    result = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_trials_are_listed_in_order() -> None:
    """Each trial has a line, with the cheapest first."""
    lines = plan("--provider", "cpu").splitlines()
    assert lines[0] == "3 trials on local, at most 1.5 s of timing"
    assert [line[:26].rstrip() for line in lines[2:]] == [
        "tiny inference cpu batch 1",
        "tiny training cpu batch 2",
        "tiny training cpu batch 4",
    ]


def test_sweeps_have_no_time_beforehand() -> None:
    """A plan of sweeps alone says how many, and does not promise a time of zero."""
    lines = plan("--provider", "cpu", "--batch-size", "auto").splitlines()
    assert lines[0].startswith("2 sweeps of batch sizes on local: ")
    assert not any("0 trials" in line for line in lines)


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_what_is_left_out_has_its_reason() -> None:
    """Without a GPU the CUDA trials are listed with the reason."""
    text = plan()
    assert "left out, because provider cuda: expected a usable GPU" in text
    assert "\n  tiny training cuda\n" in text
    assert "\n  tiny inference cuda\n" in text


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_cuda_kernels_are_checked_without_a_gpu() -> None:
    """Without a GPU the command lists nodes without a CUDA kernel, then ends with exit code 3."""
    result = CliRunner().invoke(app, ["plan", "--provider", "cuda"])
    assert isinstance(result.exception, CapabilityError)
    assert result.stdout.startswith("CUDA kernels: all ")
    assert result.stdout.endswith("nodes of 2 graphs have one\n")


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_a_rented_machine_is_planned_without_a_gpu(tmp_path: Path) -> None:
    """The trials of a machine with a GPU come from its spec, with the reason not to run here."""
    specs = tmp_path / "project/specs"
    machine = specs / "hardware/giant.toml"
    chip = '[[accelerators]]\nname = "H100"\ncompute_capability = "9.0"\nmemory_gib = 80\n'
    machine.write_text(f"{machine.read_text()}\n{chip}")
    study = next((specs / "studies").glob("*.toml"))
    study.write_text(re.sub("(?m)^hardware = .*$", 'hardware = ["giant"]', study.read_text()))
    lines = plan("--provider", "cuda", "--hardware", "giant").splitlines()
    assert lines[0].startswith("CUDA kernels: all ")
    assert lines[1].startswith("3 trials on giant, at most 1.5 s of timing")
    assert lines[-1].startswith("planned from the spec of giant; this machine cannot run it: ")
    sweeps = plan("--provider", "cuda", "--hardware", "giant", "--batch-size", "auto").splitlines()
    assert (sweeps[0], sweeps[-1]) == (lines[0], lines[-1])
    assert any(line.startswith("2 sweeps") for line in sweeps), sweeps


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_nodes_without_a_cuda_kernel_are_named(tmp_path: Path) -> None:
    """A bitwise operation on integers stays on the CPU; its types and bytes are printed."""
    path = tmp_path / "project" / "models" / "tiny.onnx"
    model = onnx.load(path)
    cast = onnx.helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT32)
    product = onnx.helper.make_node("BitwiseAnd", ["whole", "whole"], ["both"])
    model.graph.node.extend([cast, product])
    model.graph.output.append(onnx.helper.make_tensor_value_info("both", TensorProto.INT32, None))
    onnx.save(model, path)
    lines = CliRunner().invoke(app, ["plan", "--provider", "cuda"]).stdout.splitlines()
    assert lines[0] == "CUDA kernels: 1 of 2 graphs would use the CPU:"
    assert lines[1].startswith("  tiny inference fp32: 1 of ")
    assert lines[1].endswith("192 bytes each: 1 BitwiseAnd(int32, int32)")


@pytest.mark.skipif("cuda" in usable_providers(), reason="CUDA is usable here")
def test_a_graph_that_cannot_be_built_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph that cannot be built in bf16 is left out, and the others are checked."""
    checks = [
        ("tiny training fp32", KernelCheck(2, ())),
        ("tiny training bf16", CapabilityError("bf16: expected a half form")),
    ]
    monkeypatch.setattr("epochcost.cli.plan.check_trials", lambda *_: iter(checks))
    assert CliRunner().invoke(app, ["plan", "--provider", "cuda"]).stdout.splitlines() == [
        "CUDA kernels: all 2 nodes of 1 graph have one",
        "left out: tiny training bf16: bf16: expected a half form",
    ]


def test_verbose_shows_the_memory_of_models() -> None:
    """The memory of each batch size is printed in lines of at most 100 columns."""
    lines = plan("--provider", "cpu", "--verbose").splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.startswith("tiny training cpu: 2: ") and "4: " in line for line in lines)


def test_verbose_says_why_a_model_is_not_counted() -> None:
    """A model with an invalid graph has a reason, and other models have their memory."""
    spec = Path("specs/models/tiny.toml").read_text()
    Path("specs/models/broken.toml").write_text(
        spec.replace('"tiny"', '"broken"', 1).replace("tiny.onnx", "broken.onnx")
    )
    Path("models/broken.onnx").write_bytes(b"no graph at all")
    study = Path("specs/studies/brief.toml")
    study.write_text(study.read_text().replace('models = ["tiny"]', 'models = ["tiny", "broken"]'))
    text = plan("--provider", "cpu", "--verbose")
    assert "\nbroken: not counted: models/broken.onnx" in text
    assert "\ntiny training cpu: " in text


def test_a_decoder_without_a_graph_is_left_out() -> None:
    """The plan says that the decoder's times are predicted."""
    form = DECODER_SPEC.replace('graph = "tiny.onnx"', "").replace('"tiny"', '"formal"', 1)
    numbers = "[decoder]\nhidden = 64\nparameters = 100_000"
    Path("specs/models/formal.toml").write_text(form.replace("[decoder]", numbers))
    study = Path("specs/studies/brief.toml")
    study.write_text(study.read_text().replace('models = ["tiny"]', 'models = ["tiny", "formal"]'))
    text = plan("--provider", "cpu", "--verbose")
    assert "the model has no graph: it is predicted from its form:\n  formal\n" in text
    assert "\nformal: no graph; its times are predicted from [decoder]\n" in text
    assert "\ntiny training cpu: " in text


def test_an_empty_plan_says_why() -> None:
    """Without a trial, the plan and the error of a run name the reason for each study."""
    study = Path("specs/studies/brief.toml")
    text = study.read_text(encoding="utf-8")
    study.write_text(text.replace("rounds", 'providers = ["cuda"]\nrounds'), encoding="utf-8")
    reason = "it is for cuda, not for cpu: name another --study or --provider"
    assert f"left out, because {reason}:\n  study brief\n" in plan("--provider", "cpu")
    refused = CliRunner().invoke(app, ["run", "--provider", "cpu"])
    assert str(refused.exception).endswith(f"found none\n  study brief: {reason}")
    study.unlink()
    assert "left out, because specs/studies/ has no study" in plan()


def test_another_machine_is_refused_unless_taken_as_is() -> None:
    """The refusal names ``--as-is``, which plans for the other machine."""
    refused = CliRunner().invoke(app, ["plan", "--provider", "cpu", "--hardware", "giant"])
    assert isinstance(refused.exception, InputError)
    assert "--as-is" in str(refused.exception)
    assert "on giant" in plan("--provider", "cpu", "--hardware", "giant", "--as-is")


def test_the_cost_at_an_assumed_price_says_so() -> None:
    """The cost of the plan names the price plan, and whether its price is assumed."""
    path = Path("specs/prices/box.toml")
    path.parent.mkdir()
    for assumed, words in ("", "(on-demand)"), ("assumed = true\n", "(on-demand, assumed)"):
        path.write_text(price_text("giant", "1") + assumed)
        first = plan("--provider", "cpu", "--hardware", "giant", "--as-is").splitlines()[0]
        assert first.endswith(words)
