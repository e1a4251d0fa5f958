"""Decoder files in the layout of onnxruntime-genai's model builder are planned and timed."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from built_decoders import built_decoder, save_built
from epochcost.errors import ModelError
from epochcost.execute.build import build_job
from epochcost.execute.planning import plan_run
from epochcost.execute.sizing import decoder_weights
from epochcost.graphs.weightless import weightless
from epochcost.measure.worker import measure
from epochcost.plan.make import Plan, RunRequest
from epochcost.plan.trial import Trial
from epochcost.plan.work import Phase
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import parameter_count
from served_results import ASKED
from tiny_decoders import DECODER_SPEC, HEADS, SHARED, tiny_decoder
from tiny_project import write_tiny_project

FILES = ("stored", "codes", "drawn", "placed")
STUDY = """
id = "brief"
name = "Brief"
models = ["stored", "codes", "drawn", "placed"]
modes = ["inference"]
precisions = ["fp32", "int4"]
rounds = 1

[sampling]
relative_half_width = 0.5
minimum_samples = 10
budget_seconds = 0.3
"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    """A project with files in fp32, in 4 bits, without weights, and with positions as input."""
    root = write_tiny_project(tmp_path_factory.mktemp("built"))
    models = root / "models"
    save_built(built_decoder(), models / "stored.onnx")
    save_built(built_decoder(four_bits=True), models / "codes.onnx")
    save_built(built_decoder(rotary=False), models / "placed.onnx")
    onnx.save(weightless(models / "stored.onnx"), models / "drawn.onnx")
    for name in FILES:
        spec = DECODER_SPEC.replace("tiny", name)
        if name == "placed":
            spec = spec.replace(f"key_value_heads = {SHARED}", f"key_value_heads = {HEADS}")
        (root / f"specs/models/{name}.toml").write_text(spec)
    (root / "specs/studies/brief.toml").write_text(STUDY)
    return load_catalogue(root)


def planned(catalogue: Catalogue) -> Plan:
    """The plan of a run on the CPU."""
    return plan_run(catalogue, RunRequest(providers=("cpu",)))


def trial_of(catalogue: Catalogue, name: str, precision: str, phase: str) -> Trial:
    """The first planned trial of this model, precision and phase."""
    return next(
        one
        for one in planned(catalogue).trials
        if (one.model, one.precision) == (name, precision)
        and isinstance(one.work, Phase)
        and one.work.name == phase
    )


def test_a_file_is_measured_in_what_it_stores(catalogue: Catalogue) -> None:
    """A file's stored weights fix its precision; the plan says why others are left out."""
    plan = planned(catalogue)
    found = {name: {t.precision for t in plan.trials if t.model == name} for name in FILES}
    assert found == {
        "stored": {"fp32"},
        "codes": {"int4"},
        "drawn": {"fp32", "int4"},
        "placed": {"fp32"},
    }
    reasons = {left.what.split()[0]: left.reason for left in plan.left_out}
    assert "choose int4 in the study's precisions" in reasons["codes"]
    assert "`epochcost weightless`" in reasons["stored"]


@pytest.mark.parametrize(
    ("name", "precision"),
    [("stored", "fp32"), ("codes", "int4"), ("drawn", "int4"), ("placed", "fp32")],
)
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_a_phase_is_timed(
    catalogue: Catalogue, tmp_path: Path, name: str, precision: str, phase: str
) -> None:
    """The cache is updated in place. Logits of 4-bit weights are near those of fp32."""
    trial, model = trial_of(catalogue, name, precision, phase), catalogue.model(name)
    job = build_job(trial, model, catalogue.graph_path(model), tmp_path)
    measured = measure(job, tmp_path, lambda _: None)
    assert len(measured.samples_seconds) >= 10
    assert (measured.agreement is None) == (precision == "fp32")
    if measured.agreement:
        (logits,) = measured.agreement.outputs
        assert 0 < (logits.relative_to_norm or 0) < 0.02


def test_another_precision_is_not_built(catalogue: Catalogue, tmp_path: Path) -> None:
    """A trial in fp32 or fp16 refuses weights of 4 bits, in steps and behind an engine."""
    trial, model = trial_of(catalogue, "codes", "int4", "prefill"), catalogue.model("codes")
    for precision in ("fp32", "fp16"):
        plain = trial.model_copy(update={"precision": precision})
        behind = plain.model_copy(update={"work": ASKED})
        for one in (plain, behind):
            with pytest.raises(ModelError, match=f"weights of 4 bits, not in {precision}"):
                build_job(one, model, catalogue.graph_path(model), tmp_path)


def test_parameters_are_those_of_the_weights(catalogue: Catalogue) -> None:
    """Rotary tables and scales are not parameters; each 4-bit code is one parameter."""
    counts = {
        name: parameter_count(load_model(catalogue.graph_path(catalogue.model(name))))
        for name in ("stored", "codes", "drawn")
    }
    own = parameter_count(tiny_decoder())
    assert counts == dict.fromkeys(counts, own)
    multiplied = {
        decoder_weights(load_model(catalogue.graph_path(catalogue.model(name))))[0]
        for name in counts
    }
    assert len(multiplied) == 1
