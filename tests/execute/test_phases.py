"""Phases of a decoder are planned and timed: prefill and decoding, in fp32 and int4."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from epochcost.errors import ModelError
from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run
from epochcost.measure.agreement import agreement
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, constant_weights, graph_inputs, initial_parameters
from epochcost.measure.worker import measure
from epochcost.plan.make import RunRequest
from epochcost.plan.trial import Trial
from epochcost.plan.variant import unsupported_reason
from epochcost.plan.work import STEPS, Phase
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Precision
from onnxstep.graphs.loading import load_model
from tiny_decoders import DECODER_SPEC, tiny_decoder
from tiny_project import write_tiny_project

STUDY = """
id = "brief"
name = "Brief"
models = ["tiny"]
modes = ["inference"]
precisions = ["fp32", "int4"]
rounds = 1

[sampling]
relative_half_width = 0.5
minimum_samples = 10
budget_seconds = 0.5
"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    """A project whose one model is a decoder."""
    root = write_tiny_project(tmp_path_factory.mktemp("phases"))
    (root / "specs/models/tiny.toml").write_text(DECODER_SPEC)
    (root / "specs/studies/brief.toml").write_text(STUDY)
    onnx.save(tiny_decoder(deviation=0.05), root / "models" / "tiny.onnx")
    return load_catalogue(root)


def planned(catalogue: Catalogue) -> tuple[Trial, ...]:
    """The trials of the study on the CPU."""
    return plan_run(catalogue, RunRequest(providers=("cpu",))).trials


def test_each_phase_is_a_trial(catalogue: Catalogue) -> None:
    """One prompt and two contexts, for one and two sequences, in two precisions."""
    trials = planned(catalogue)
    assert len({trial.id for trial in trials}) == len(trials) == 12
    titles = {trial.title for trial in trials}
    assert "tiny prefill of 8 cpu batch 1" in titles
    assert "tiny decode at 24 cpu batch 2, int4" in titles


@pytest.mark.parametrize("precision", ["fp32", "int4"])
@pytest.mark.parametrize("name", ["prefill", "decode"])
def test_a_phase_is_timed(catalogue: Catalogue, tmp_path: Path, name: str, precision: str) -> None:
    """The worker updates the cache in place, and logits in int4 are compared with fp32."""
    trial = next(
        one
        for one in planned(catalogue)
        if one.precision == precision and isinstance(one.work, Phase) and one.work.name == name
    )
    model = catalogue.model("tiny")
    job = build_job(trial, model, catalogue.graph_path(model), tmp_path)
    assert all(carried.in_place for carried in job.carried)
    measured = measure(job, tmp_path, lambda _: None)
    assert len(measured.samples_seconds) >= 10
    assert (measured.agreement is None) == (precision == "fp32")
    if measured.agreement:
        (logits,) = measured.agreement.outputs
        assert logits.output == "logits"
        # The kernel rounds activations to 8 bits: half a percent of every product.
        assert 0 < (logits.relative_to_norm or 0) < 0.02


@pytest.mark.parametrize("precision", ["fp16", "int4"])
def test_a_phase_for_a_gpu_has_its_cache_in_half(
    catalogue: Catalogue, tmp_path: Path, precision: Precision
) -> None:
    """The graph for CUDA, run here on the CPU, has an fp16 cache and logits near fp32."""
    drawn = next(one for one in planned(catalogue) if one.title == "tiny decode at 24 cpu batch 2")
    trial = drawn.model_copy(update={"provider": "cuda", "precision": precision})
    model = catalogue.model("tiny")
    job = build_job(trial, model, catalogue.graph_path(model), tmp_path)
    held = {one.name: one.type.tensor_type.elem_type for one in load_model(job.graph).graph.input}
    cache = {kind for name, kind in held.items() if name.startswith("past")}
    assert cache == {onnx.TensorProto.FLOAT16}
    parameters = initial_parameters(job)
    fixed = constant_weights(job, parameters)
    session = open_session(job.graph, "cpu", job.session, weights=fixed)
    inputs = graph_inputs(job, parameters, session.get_inputs())
    step = Stepper(session, "cpu", job.mode, inputs, job.carried, job.session)
    step()
    found = agreement(job, {"logits": step.output("logits")})
    assert found is not None
    assert 0 < (found.outputs[0].relative_to_norm or 0) < 0.01


def test_what_a_device_has_no_kernel_for_is_left_out(catalogue: Catalogue) -> None:
    """CUDA has no attention kernel with an fp32 cache, so a decoder needs half precision."""
    plain = planned(catalogue)[0].model_copy(update={"provider": "cuda", "precision": "fp32"})
    reason = unsupported_reason(plain)
    assert reason is not None
    assert "half precision" in reason
    assert unsupported_reason(plain.model_copy(update={"precision": "fp16"})) is None
    assert unsupported_reason(plain.model_copy(update={"work": STEPS})) is None


def test_a_spec_that_is_not_the_graph_is_refused(catalogue: Catalogue, tmp_path: Path) -> None:
    """For a spec with one layer more than the graph, the message names the missing cache."""
    trial, model = planned(catalogue)[0], catalogue.model("tiny")
    assert model.decoder is not None
    more = model.decoder.model_copy(update={"layers": 3})
    with pytest.raises(ModelError, match=r"past_key_values\.2\.key"):
        build_job(
            trial,
            model.model_copy(update={"decoder": more}),
            catalogue.graph_path(model),
            tmp_path,
        )
