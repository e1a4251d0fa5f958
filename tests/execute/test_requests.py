"""Requests to a decoder behind an engine are planned, built, and sent by the real LoadGen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnxstep
from epochcost.errors import CapabilityError, InputError
from epochcost.execute.build import build_job
from epochcost.execute.engines import find_environment, python_of
from epochcost.execute.planning import plan_run
from epochcost.execute.requests import PROMPTS, draw_lengths, with_all_positions
from epochcost.measure import start
from epochcost.measure.job import AskedDecoder, Job, Progress, TrialFailed
from epochcost.measure.trial import OnProgress
from epochcost.measure.watch import Watch
from epochcost.measure.worker import measure
from epochcost.plan.make import RunRequest
from epochcost.plan.trial import Trial
from epochcost.plan.work import Requests
from epochcost.results.served import TokenRun
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.requests import Lengths
from fake_engine import fake_genai
from tiny_decoders import DECODER_SPEC, Runner, greedy_anew, greedy_with_cache, tiny_decoder
from tiny_project import write_tiny_project

ENGINE = "onnxruntime-genai==0.18.0"
STUDY = """
id = "brief"
name = "Asked"
models = ["tiny"]
modes = ["inference"]
precisions = ["fp32", "int4"]
rounds = 1

[requests]
prompt = { median = 6, p90 = 12, most = 16 }
answer = { tokens = [3, 5], counts = [3, 1] }
first_token_ms = 100
token_ms = 100
percentile = 50
load_percents = [50, 100]

[sampling]
minimum_samples = 10
budget_seconds = 0.5
"""
Plan = Callable[..., tuple[Trial, ...]]


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    """A project whose one model is a decoder, with a study of requests."""
    return project(tmp_path, STUDY)


def project(folder: Path, study: str) -> Catalogue:
    """A project with a decoder and a study."""
    root = write_tiny_project(folder / "project")
    (root / "specs/models/tiny.toml").write_text(DECODER_SPEC)
    (root / "specs/studies/brief.toml").write_text(study)
    onnx.save(tiny_decoder(deviation=0.05), root / "models" / "tiny.onnx")
    return load_catalogue(root)


@pytest.fixture
def trial(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> Trial:
    """The trial in fp32, planned as if the engine were installed."""
    monkeypatch.setattr("epochcost.execute.engines.find_environment", lambda _: object())
    trials = plan_run(catalogue, RunRequest(providers=("cpu",))).trials
    return next(one for one in trials if one.precision == "fp32")


@pytest.fixture
def job(catalogue: Catalogue, trial: Trial, tmp_path: Path, monkeypatch: Any) -> Job:
    """The job of ``trial``."""
    monkeypatch.setattr("epochcost.execute.build.interpreter", lambda _: None)
    model = catalogue.model("tiny")
    return build_job(trial, model, catalogue.graph_path(model), tmp_path)


def ignore(_: Progress) -> None:
    """Ignore the worker's progress."""


def answered(
    job: Job,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    on_progress: OnProgress = ignore,
    **engine: Any,
) -> Any:
    """Measure ``job`` with a fake onnxruntime-genai."""
    monkeypatch.setitem(sys.modules, "onnxruntime_genai", fake_genai(**engine))
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CPUExecutionProvider"])
    return measure(job, folder, lambda message: on_progress(message.progress))


def test_without_the_engine_its_command_is_named(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both trials are left out, and the reason names the install command."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plan = plan_run(catalogue, RunRequest(providers=("cpu",)))
    assert not plan.trials
    assert len(plan.left_out) == 2
    assert all(f"epochcost engine {ENGINE}" in one.reason for one in plan.left_out)


def test_a_trial_is_of_the_engine(trial: Trial) -> None:
    """The trial's runtime is the engine and its scenario is ``server``."""
    assert (trial.runtime, trial.work.scenario, trial.batch_size) == (ENGINE, "server", 4)
    assert trial.title == "tiny server cpu batch 4"
    assert Trial.model_validate_json(trial.model_dump_json()).id == trial.id


def test_requests_in_half_precision_are_left_out_with_the_reason(tmp_path: Path) -> None:
    """Engines answer in fp32 and int4 only."""
    found = project(tmp_path, STUDY.replace('"int4"', '"fp16"'))
    plan = plan_run(found, RunRequest(providers=("cpu",)))
    (reason,) = {one.reason for one in plan.left_out if "fp16" in one.what}
    assert reason == "an engine answers requests in fp32, int4 only"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("answer = { tokens = [1, 5] }", "should have answers of at least 2 tokens"),
        ("answer = { tokens = [3], counts = [1, 2] }", "should have as many counts as tokens"),
        ("answer = { median = 8 }", "should have either tokens, or all of median, p90 and most"),
        ("answer = { median = 8, p90 = 6, most = 9 }", "should have median below p90"),
        ("answer = { tokens = [-3] }", "should be greater than 0, got -3"),
    ],
)
def test_lengths_that_no_request_can_have_are_refused(
    tmp_path: Path, written: str, expected: str
) -> None:
    """The message has the file, the line and the demand."""
    study = STUDY.replace("answer = { tokens = [3, 5], counts = [3, 1] }", written)
    with pytest.raises(InputError, match=r"brief\.toml:\d+.*") as caught:
        project(tmp_path, study)
    assert expected in str(caught.value)


def test_lengths_are_as_declared() -> None:
    """Drawn lengths have the declared median and 90th percentile, or the declared counts."""
    draw = np.random.default_rng(1)
    curve = draw_lengths(Lengths(median=100, p90=300, most=4000), draw)
    assert 85 < np.median(curve) < 115
    assert 230 < np.quantile(curve, 0.9) < 380
    table = draw_lengths(Lengths(tokens=(8, 64), counts=(3, 1)), draw)
    assert abs((table == 8).mean() - 0.75) < 0.06
    assert len(curve) == len(table) == PROMPTS


def test_every_position_is_scored() -> None:
    """A graph with logits of the last position gets logits of all; else it is unchanged."""
    model = tiny_decoder()
    whole = with_all_positions(model)
    (scores,) = (one for one in whole.graph.output if one.name == "logits")
    assert scores.type.tensor_type.shape.dim[1].dim_param == "sequence_length"
    onnx.checker.check_model(whole, full_check=True)
    assert with_all_positions(whole) is whole


@pytest.mark.slow
def test_rates_are_asked_and_latencies_are_loadgens(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LoadGen runs a search, the scored run and half its rate, with latencies of each request.

    With loose bounds all requests are good; with a bound of zero none is.
    """
    served = answered(job, tmp_path, monkeypatch).served
    assert served is not None
    purposes = [run.purpose for run in served.runs]
    assert purposes[-1] == "share"
    assert "scored" in purposes
    assert served.run is not None
    assert served.run.kept_bound
    half = served.runs[-1]
    asked = served.run.asked_samples_per_second
    assert half.asked_samples_per_second == pytest.approx(asked / 2)
    for run in (served.run, half):
        tokens = run.tokens
        assert isinstance(tokens, TokenRun)
        assert len(tokens.first_nanoseconds) == len(tokens.further_nanoseconds) == run.samples
        assert tokens.written >= 3 * run.samples
        assert "percentile first token latency" in run.summary
    assert served.start_seconds is not None
    fields = {"prompt": Lengths(tokens=(3,)), "answer": Lengths(tokens=(3,))}
    patient = Requests(first_token_ms=10**6, token_ms=10**6, percentile=99, **fields)
    tokens = served.run.tokens
    assert tokens is not None
    assert tokens.good_share(patient) == 1
    assert tokens.keeps(patient)
    assert tokens.good_share(patient.model_copy(update={"token_ms": 0})) == 0


@pytest.mark.slow
def test_bounds_that_nothing_keeps_are_a_state(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no rate keeps the bounds, no rate is reported and the runs of the search are kept.

    The machine's conditions are stored, since another program may have slowed the answers.
    """
    assert isinstance(job.serving, AskedDecoder)
    hopeless = job.serving.requests.model_copy(update={"first_token_ms": 10, "token_ms": 1})
    serving = job.serving.model_copy(update={"requests": hopeless})
    asked = job.model_copy(update={"serving": serving})
    with Watch("cpu") as watch:
        measured = watch.completed(answered(asked, tmp_path, monkeypatch, watch.follow))
    assert measured.served.reported is None
    assert {run.purpose for run in measured.served.runs} == {"search"}
    assert 0 < measured.conditions.seconds <= measured.wall_seconds


def test_an_engine_that_gives_up_ends_the_trial_with_its_reason(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial fails with the engine's error instead of waiting for answers."""
    with pytest.raises(TrialFailed, match="a request failed: OUT_OF_MEMORY"):
        answered(job, tmp_path, monkeypatch, fails_after=60)


def test_a_runtime_with_another_provider_is_refused(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine does not report where its nodes run, so its runtime must have the CPU alone."""
    monkeypatch.setitem(sys.modules, "onnxruntime_genai", fake_genai())
    everything = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(ort, "get_available_providers", lambda: everything)
    with pytest.raises(CapabilityError, match="a runtime with the CPU alone"):
        measure(job, tmp_path, lambda _: None)


_ASK = """
import json, sys
from pathlib import Path
sys.path[:0] = {sources!r}
from epochcost.measure.engine import DecoderEngine
from epochcost.measure.job import Job
job = Job.model_validate_json(Path({job!r}).read_bytes())
engine = DecoderEngine(job, job.serving, Path({folder!r}))
run, tokens = engine._engine.run, []


class Recording:
    def __getattr__(self, name):
        return getattr(inner, name)

    def run(self, buffer):
        for event in run(buffer):
            if event.flags & engine._genai.EngineEventFlags.TOKEN:
                tokens.append(event.token)
            yield event


inner, engine._engine = engine._engine, Recording()
engine.begin(0)
while engine.busy:
    engine.step()
print(json.dumps(tokens))
"""


@pytest.mark.slow
@pytest.mark.skipif(find_environment(ENGINE) is None, reason=f"{ENGINE} is not installed here")
def test_greedy_tokens_are_those_of_phases_and_of_reading_all_again(tmp_path: Path) -> None:
    """The engine, the cache in place and a run without cache give the same 200 tokens."""
    study = STUDY.replace("median = 6, p90 = 12, most = 16", "tokens = [9]")
    study = study.replace("tokens = [3, 5], counts = [3, 1]", "tokens = [200]")
    found = project(tmp_path, study)
    decoder = tiny_decoder(deviation=0.3)
    onnx.save(decoder, found.graph_path(found.model("tiny")))
    trials = plan_run(found, RunRequest(providers=("cpu",))).trials
    trial = next(one for one in trials if one.precision == "fp32")
    model = found.model("tiny")
    built = build_job(trial, model, found.graph_path(model), tmp_path)
    (tmp_path / "job.json").write_text(built.model_dump_json())
    environment = find_environment(ENGINE)
    assert environment is not None
    code = _ASK.format(
        sources=[str(Path(start.__file__).parents[2]), str(Path(onnxstep.__file__).parents[1])],
        job=str(tmp_path / "job.json"),
        folder=str(tmp_path),
    )
    command = [str(python_of(environment)), "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tokens = json.loads(done.stdout.splitlines()[-1])
    prompt = np.load(built.batches)["prompts"][:1, :9].astype(np.int64)
    runner = Runner(decoder)
    assert tokens == greedy_with_cache(runner, prompt, 200) == greedy_anew(runner, prompt, 200)
