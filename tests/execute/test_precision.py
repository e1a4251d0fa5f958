"""Small models in each precision, from a study to a measurement by ONNX Runtime on the CPU."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from epochcost.errors import CapabilityError
from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run
from epochcost.measure.agreement import agreement
from epochcost.measure.job import Job
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters
from epochcost.measure.worker import measure
from epochcost.plan.make import RunRequest
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode, Provider
from tiny_project import write_tiny_project
from usable_providers import usable_providers

Shape = list[int]
# ONNX Runtime has fp16 kernels of the CPU on 64-bit Arm.
needs_x86 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="other CPUs have kernels in half"
)


def weightless(nodes: list[onnx.NodeProto], weights: dict[str, Shape]) -> onnx.ModelProto:
    """A model from x (batch, 16) to logits (batch, 3) with randomly drawn weights."""
    graph = helper.make_graph(
        nodes,
        "small",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16]),
            *(helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in weights.items()),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 3])],
        [
            numpy_helper.from_array(np.array([0, 1, 4, 4]), "image"),
            numpy_helper.from_array(np.array([0, 4, 4]), "tokens"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    drawn = {
        name: {"distribution": "uniform", "scale": 0.5, "seed": seed}
        for seed, name in enumerate(weights)
    }
    helper.set_model_props(model, {"epochcost.parameters": json.dumps(drawn)})
    return model


def perceptron() -> onnx.ModelProto:
    """Two dense layers."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["active"]),
        helper.make_node("Gemm", ["active", "v"], ["logits"]),
    ]
    return weightless(nodes, {"w": [16, 32], "b": [32], "v": [32, 3]})


def convolutional() -> onnx.ModelProto:
    """Two convolutions and a dense layer."""
    nodes = [
        helper.make_node("Reshape", ["x", "image"], ["i"]),
        helper.make_node("Conv", ["i", "k"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Conv", ["r", "l"], ["d"]),
        helper.make_node("Flatten", ["d"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["logits"]),
    ]
    return weightless(nodes, {"k": [8, 1, 2, 2], "l": [8, 8, 2, 2], "v": [32, 3]})


def attending() -> onnx.ModelProto:
    """A block of a transformer: attention over four tokens, normalisation, a dense layer."""
    nodes = [
        helper.make_node("Reshape", ["x", "tokens"], ["t"]),
        *(helper.make_node("MatMul", ["t", f"w{n}"], [n]) for n in "qkv"),
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "v"], ["seen"]),
        helper.make_node("Add", ["t", "seen"], ["sum"]),
        helper.make_node("LayerNormalization", ["sum", "scale"], ["normal"]),
        helper.make_node("Flatten", ["normal"], ["f"]),
        helper.make_node("Gemm", ["f", "out"], ["logits"]),
    ]
    weights = {"wq": [4, 4], "wk": [4, 4], "wv": [4, 4], "scale": [4], "out": [16, 3]}
    return weightless(nodes, weights)


MODELS = {"perceptron": perceptron, "convolutional": convolutional, "attending": attending}


def built_job(
    folder: Path, graph: onnx.ModelProto, mode: Mode, precision: str, provider: Provider = "cpu"
) -> Job:
    """Build a job of a model in a precision; tf32 and bf16 also on CPUs."""
    root = write_tiny_project(folder / "project")
    onnx.save(graph, root / "models" / "tiny.onnx")
    study = root / "specs" / "studies" / "brief.toml"
    planned = "fp32" if precision in ("tf32", "bf16") else precision
    asked = f'precisions = ["{planned}"]\nmodes = ["{mode}"]\n[sampling]'
    study.write_text(study.read_text().replace("[sampling]", asked))
    spec = root / "specs" / "models" / "tiny.toml"
    spec.write_text(spec.read_text().replace("batch_sizes = [1]", "batch_sizes = [8]"))
    catalogue = load_catalogue(root)
    trial = plan_run(catalogue, RunRequest(providers=(provider,))).trials[0]
    trial = trial.model_copy(update={"precision": precision})
    model = catalogue.model("tiny")
    (folder / "job").mkdir()
    return build_job(trial, model, catalogue.graph_path(model), folder / "job")


@needs_x86
@pytest.mark.parametrize("name", MODELS)
def test_fp16_without_kernels_is_refused(tmp_path: Path, name: str) -> None:
    """Without a refusal, ONNX Runtime would silently cast to fp32 and back."""
    job = built_job(tmp_path, MODELS[name](), "inference", "fp16")
    with pytest.raises(CapabilityError, match=r"fp16: the CPU provider has no fp16 kernel for"):
        measure(job, tmp_path, lambda _: None)


@needs_x86
@pytest.mark.parametrize("name", MODELS)
def test_bf16_without_kernels_is_refused(tmp_path: Path, name: str) -> None:
    """ONNX Runtime opens no session, and the message names the operator."""
    job = built_job(tmp_path, MODELS[name](), "inference", "bf16")
    with pytest.raises(CapabilityError, match=r"bf16: the CPU provider has no bf16 kernel for \w+"):
        measure(job, tmp_path, lambda _: None)


def test_a_training_step_is_compared_by_its_loss(tmp_path: Path) -> None:
    """TF32 changes nothing on the CPU, so the first loss equals that of fp32."""
    job = built_job(tmp_path, perceptron(), "training", "tf32")
    found = measure(job, tmp_path, lambda _: None).agreement
    assert found is not None
    (loss,) = found.outputs
    assert (loss.maximum_absolute, loss.relative_to_norm, loss.largest_changed) == (0, 0, None)


def test_a_step_in_half_precision_carries_the_scale_of_its_loss(tmp_path: Path) -> None:
    """The step carries fp32 master weights and the loss scale; the fp32 step lacks the scale."""
    job = built_job(tmp_path, perceptron(), "training", "fp16")
    fills = {carried.input: carried.fill for carried in job.carried}
    assert (fills["loss_scale"], fills["loss_scale.good_steps"]) == (65536, 0)
    assert job.reference is not None
    plain = {value.name for value in onnx.load(job.reference.graph).graph.input}
    assert {*fills} - plain == {"loss_scale", "loss_scale.good_steps"}


def test_the_first_loss_in_half_is_compared_with_that_of_the_fp32_step(tmp_path: Path) -> None:
    """On the CPU, which casts fp16 nodes to fp32, the first loss is near that of fp32."""
    job = built_job(tmp_path, attending(), "training", "fp16")
    session = open_session(job.graph, "cpu")
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    step = Stepper(session, "cpu", "training", inputs, job.carried)
    step()
    found = agreement(job, {"loss": step.output("loss")})
    assert found is not None
    assert 0 < found.outputs[0].maximum_absolute < 0.01


@needs_x86
@pytest.mark.parametrize("name", MODELS)
def test_training_in_fp16_without_kernels_is_refused(tmp_path: Path, name: str) -> None:
    """ONNX Runtime's casts around fp32 kernels do not count as training in fp16."""
    job = built_job(tmp_path, MODELS[name](), "training", "fp16")
    with pytest.raises(
        CapabilityError, match=r"fp16: the CPU provider has no fp16 kernel for .*Ge"
    ):
        measure(job, tmp_path, lambda _: None)


@needs_x86
@pytest.mark.parametrize("name", ["perceptron", "attending"])
def test_training_in_bf16_without_kernels_is_refused(tmp_path: Path, name: str) -> None:
    """ONNX Runtime opens no session, and the message names the operator."""
    job = built_job(tmp_path, MODELS[name](), "training", "bf16")
    with pytest.raises(CapabilityError, match=r"bf16: the CPU provider has no bf16 kernel for \w+"):
        measure(job, tmp_path, lambda _: None)


def test_what_onnx_has_no_half_form_of_is_refused_beforehand(tmp_path: Path) -> None:
    """Convolution in bf16 needs opset 22, so a step at opset 18 is refused before it is built."""
    with pytest.raises(
        CapabilityError, match="half form of Conv, ConvTranspose; ONNX has none at opset 18"
    ):
        built_job(tmp_path, convolutional(), "training", "bf16")


@pytest.mark.cuda
@pytest.mark.skipif("cuda" not in usable_providers(), reason="no usable GPU")
@pytest.mark.parametrize("precision", ["tf32", "fp16", "bf16"])
def test_a_gpu_computes_in_it(tmp_path: Path, precision: str) -> None:
    """A GPU runs fp16, bf16 and TF32, and its outputs stay near fp32."""
    job = built_job(tmp_path, perceptron(), "inference", precision, "cuda")
    found = measure(job, tmp_path, lambda _: None).agreement
    assert found is not None
    assert found.outputs[0].relative_to_norm is not None
    assert found.outputs[0].relative_to_norm < 0.05


@pytest.mark.cuda
@pytest.mark.skipif("cuda" not in usable_providers(), reason="no usable GPU")
@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("name", ["perceptron", "attending"])
def test_a_gpu_trains_in_it(tmp_path: Path, name: str, precision: str) -> None:
    """A GPU trains in fp16 and bf16, and the first loss stays near fp32."""
    job = built_job(tmp_path, MODELS[name](), "training", precision, "cuda")
    found = measure(job, tmp_path, lambda _: None).agreement
    assert found is not None
    assert found.outputs[0].relative_to_norm is not None
    assert found.outputs[0].relative_to_norm < 0.02
