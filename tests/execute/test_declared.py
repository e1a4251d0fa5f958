"""What a spec can declare really runs: built, fed and trained for some steps, the loss falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from epochcost.errors import ModelError
from epochcost.execute.build import build_job
from epochcost.measure.evaluation import held_out_loss
from epochcost.measure.job import Job
from epochcost.measure.runtime import runtime_name
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper
from epochcost.measure.values import graph_inputs, initial_parameters
from epochcost.plan.digests import graph_digests, work_sha256
from epochcost.plan.trial import Trial
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode
from graph_text import model_of_text
from tiny_project import write_tiny_project

RNG = np.random.default_rng(8)
Declare = Callable[[str, str], "Declared"]


@dataclass(frozen=True)
class Declared:
    """A project whose one model is declared by a test."""

    root: Path

    def job(self, mode: Mode = "training", batch_size: int = 16) -> Job:
        """The job of a trial of the model."""
        catalogue = load_catalogue(self.root)
        model = catalogue.model("tiny")
        trial = Trial(
            model="tiny",
            mode=mode,
            provider="cpu",
            batch_size=batch_size,
            threads=1,
            seed=4,
            runtime=runtime_name(),
            producer="epochcost",
            graph_sha256=graph_digests(catalogue, ["tiny"])["tiny"],
            spec_sha256=work_sha256(model, mode),
            relative_half_width="0.5",
            minimum_samples=10,
            budget_seconds="1",
        )
        folder = self.root / "job"
        folder.mkdir(exist_ok=True)
        return build_job(trial, model, catalogue.graph_path(model), folder)


@pytest.fixture(name="declare")
def declare_fixture(tmp_path: Path) -> Declare:
    """Write a project with this graph, in ONNX's text form, and this part of a spec."""

    def declare(graph: str, spec: str) -> Declared:
        root = write_tiny_project(tmp_path / "project")
        onnx.save(model_of_text(_filled(graph)), root / "models" / "tiny.onnx")
        path = root / "specs/models/tiny.toml"
        path.write_text(
            path.read_text().split("[[inputs]]")[0] + spec + "[inference]\nbatch_sizes = [1]\n"
        )
        return Declared(root)

    return declare


def _filled(graph: str) -> str:
    """``@n`` stands for n small random numbers."""
    parts = graph.split("@")
    filled = [parts[0]]
    for part in parts[1:]:
        digits = len(part) - len(part.lstrip("0123456789"))
        values = RNG.uniform(-0.3, 0.3, int(part[:digits]))
        filled.append(",".join(f"{value:.4f}" for value in values) + part[digits:])
    return "".join(filled)


def losses(job: Job, steps: int) -> tuple[float, float]:
    """The held-out loss before and after some steps."""
    values = initial_parameters(job)
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, values, session.get_inputs())
    step = Stepper(session, job.provider, job.mode, inputs, job.carried)
    before = held_out_loss(job, values)
    for _ in range(steps):
        step()
    after = held_out_loss(job, {**values, **step.carried_values()})
    assert before is not None
    assert after is not None
    return before, after


def training(settings: str) -> str:
    """A table [training] of a thousand examples."""
    return f"[training]\n{settings}\nbatch_sizes = [16]\nexamples_per_epoch = 1000\nepochs = 3\n"


LANGUAGE = """g (int64[batch, sequence] words, float[batch, 8] h)
    => (float[batch, sequence, 40] logits, float[batch, 8] h_after)
    <float[40, 8] embedding = {@320}, float[8, 40] decoder = {@320}, int64[1] one = {1}>
    { e = Gather(embedding, words) s = ReduceMean <keepdims = 0> (e, one) m = Add(s, h)
      h_after = Tanh(m) u = Unsqueeze(h, one) c = Add(e, u) logits = MatMul(c, decoder) }"""
LANGUAGE_SPEC = """
[dimensions]
sequence = 12
[[inputs]]
name = "words"
vocabulary = 40
[[carried]]
input = "h"
output = "h_after"
"""
ADAM = 'optimizer = { name = "adam", learning_rate = 0.02 }'


def test_a_language_model_with_carried_state_learns(declare: Declare) -> None:
    """Tokens in, a class at each position out, a state from step to step, a clipped gradient."""
    settings = (
        'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = { classes = 40 }\n'
        f"weight = 12\nclip_norm = 5\n{ADAM}"
    )
    job = declare(LANGUAGE, LANGUAGE_SPEC + training(settings)).job()
    pool = np.load(job.batches)
    assert pool["words"].shape[1:] == pool["target"].shape[1:] == (16, 12)
    assert "h" in {carried.input for carried in job.carried}
    assert job.evaluation is not None
    assert [(c.input, c.output) for c in job.evaluation.carried] == [("h", "h_after")]
    before, after = losses(job, 60)
    assert before == pytest.approx(12 * np.log(40), rel=0.05)
    assert after < 0.7 * before


def test_a_masked_language_model_learns(declare: Declare) -> None:
    """Positions that are not asked for are marked, and the loss passes over them."""
    settings = (
        'loss = "softmax_cross_entropy"\noutput = "logits"\n'
        f"target = {{ classes = 40, ignored_share = 0.8 }}\n{ADAM}"
    )
    job = declare(LANGUAGE, LANGUAGE_SPEC + training(settings)).job()
    target = np.load(job.batches)["target"]
    assert 0.75 < np.mean(target == -100) < 0.85
    before, after = losses(job, 80)
    assert after < 0.8 * before


@pytest.mark.parametrize(
    ("optimizer", "first"),
    [
        (
            '{ name = "adagrad", learning_rate = 0.5, initial_accumulator = 0.1 }',
            {"embedding.square_sum": 0.1, "decoder.square_sum": 0.1},
        ),
        (
            '{ name = "rmsprop", learning_rate = 0.003, momentum = 0.9 }',
            {
                f"{w}.{s}": 0
                for w in ("embedding", "decoder")
                for s in ("square_average", "momentum")
            },
        ),
    ],
)
def test_smoothed_labels_are_learnt_from_the_states_declared(
    declare: Declare, optimizer: str, first: dict[str, float]
) -> None:
    """Accumulators start where they should, momentum moves, and the rate decays meanwhile."""
    settings = (
        'loss = "softmax_cross_entropy"\noutput = "logits"\n'
        f"target = {{ classes = 40, label_smoothing = 0.1 }}\noptimizer = {optimizer}\n"
        'schedule = { name = "exponential", factor = 0.9, epochs = 0.5 }'
    )
    job = declare(LANGUAGE, LANGUAGE_SPEC + training(settings)).job()
    fills = {carried.input: carried.fill for carried in job.carried}
    assert fills == {"embedding": 0, "decoder": 0, "h": 0} | first
    before, after = losses(job, 80)
    assert before == pytest.approx(np.log(40), rel=0.05)
    assert after < 0.8 * before


def test_a_served_language_model_carries_its_state(declare: Declare) -> None:
    """Inference hands the state on too, and serves what is not state."""
    settings = (
        f'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = {{ classes = 40 }}\n{ADAM}'
    )
    job = declare(LANGUAGE, LANGUAGE_SPEC + training(settings)).job("inference", 1)
    assert [(c.input, c.output) for c in job.carried] == [("h", "h_after")]
    assert job.outputs == ("logits",)
    session = open_session(job.graph, job.provider, job.session)
    inputs = graph_inputs(job, initial_parameters(job), session.get_inputs())
    step = Stepper(session, job.provider, job.mode, inputs, job.carried)
    step()
    first = step.carried_values()["h"]
    step()
    assert first.any()
    assert not np.array_equal(first, step.carried_values()["h"])


BAG = """g (int32[batch, 30] words, float[batch, 30] mask) => (float[batch, 1] score)
    <float[200, 8] embedding = {@1600}, float[8, 1] w = {@8},
     int64[1] one = {1}, int64[1] two = {2}>
    { e = Gather(embedding, words) c = Unsqueeze(mask, two) m = Mul(e, c)
      s = ReduceSum <keepdims = 0> (m, one) score = MatMul(s, w) }"""
BAG_SPEC = """
[[inputs]]
name = "words"
vocabulary = 200
[[inputs]]
name = "mask"
value = 1
"""


def test_a_binary_classifier_of_bags_of_words_learns(declare: Declare) -> None:
    """Token indices of 32 bits, a constant mask, and one probability for each example."""
    settings = (
        f'loss = "sigmoid_cross_entropy"\noutput = "score"\ntarget = {{ classes = 2 }}\n{ADAM}'
    )
    job = declare(BAG, BAG_SPEC + training(settings)).job(batch_size=64)
    pool = np.load(job.batches)
    assert np.all(pool["mask"] == 1)
    assert pool["words"].dtype == np.int32
    assert pool["target"].dtype == np.float32
    before, after = losses(job, 150)
    assert after < 0.93 * before


TWO_HEADS = """g (float[batch, 12] x) => (float[batch, 5] logits, float[batch, 3] numbers)
    <float[12, 16] body_w = {@192}, float[16, 5] head_a = {@80}, float[16, 3] head_b = {@48}>
    { h = MatMul(x, body_w) t = Tanh(h) logits = MatMul(t, head_a) numbers = MatMul(t, head_b) }"""
TWO_HEADS_SPEC = '[[inputs]]\nname = "x"\nlow = -1\n'
AUXILIARY = """[[training.auxiliary]]
loss = "{loss}"
output = "numbers"
target = {{ low = -2, high = 2 }}
weight = 0.5
"""


@pytest.mark.parametrize("loss", ["mse", "l1", "huber"])
def test_a_model_of_two_losses_learns(declare: Declare, loss: str) -> None:
    """Classes and numbers have a target each, and training lowers their weighted sum."""
    settings = (
        f'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = {{ classes = 5 }}\n{ADAM}'
    )
    spec = TWO_HEADS_SPEC + training(settings) + AUXILIARY.format(loss=loss)
    job = declare(TWO_HEADS, spec).job()
    pool = np.load(job.batches)
    assert pool["target"].shape[1:] == (16,)
    assert pool["target_2"].shape[1:] == (16, 3)
    assert pool["target_2"].min() >= -2
    assert pool["target_2"].max() < 2
    before, after = losses(job, 100)
    assert after < 0.85 * before


def plain(extra: str, optimizer: str = ADAM) -> str:
    """The classes of the model with two outputs, and more settings."""
    loss = 'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = { classes = 5 }'
    return TWO_HEADS_SPEC + training(f"{loss}\n{optimizer}\n{extra}")


def test_a_schedule_is_a_series_of_rates(declare: Declare) -> None:
    """A thousand examples in batches of 16 are 62 steps an epoch: step 62 has a tenth."""
    extra = 'schedule = { name = "step", epochs = [1], factors = [0.1], warm_up_steps = 2 }'
    job = declare(TWO_HEADS, plain(extra)).job()
    assert job.scalars == {}
    assert job.series is not None
    rates = np.load(job.series)["learning_rate"]
    np.testing.assert_allclose(rates[[0, 1, 61, 62, -1]], [0.01, 0.02, 0.02, 0.002, 0.002])
    before, after = losses(job, 60)
    assert after < before


@pytest.mark.parametrize("extra", ["", 'schedule = { name = "on-plateau" }'])
def test_a_rate_that_stays_costs_nothing(declare: Declare, extra: str) -> None:
    """A constant rate, and one that waits for the end of an epoch, are fed once."""
    job = declare(TWO_HEADS, plain(extra)).job()
    assert job.series is None
    assert job.scalars == {"learning_rate": 0.02}


def test_frozen_parameters_stay_out_of_the_step(declare: Declare) -> None:
    """What matches is neither carried nor differentiated; the head has state and learns."""
    job = declare(TWO_HEADS, plain('freeze = ["body_*"]')).job()
    carried = {c.input for c in job.carried}
    assert carried == {"step_count", "head_a", "head_a.first_moment", "head_a.second_moment"}
    before, after = losses(job, 60)
    assert after < before


def test_settings_of_the_optimizer_arrive_in_the_graph(declare: Declare) -> None:
    """Weight decay, its exceptions and the bound of the norm change the step."""
    decayed = 'optimizer = { name = "adamw", learning_rate = 0.02, weight_decay = 0.1 }'
    project = declare(TWO_HEADS, plain(""))
    spec = project.root / "specs/models/tiny.toml"
    sizes = []
    for extra, optimizer in (
        ("", ADAM),
        ("", decayed),
        ('no_weight_decay = ["head_*"]', decayed),
        ("clip_norm = 1", ADAM),
    ):
        head = spec.read_text().split("[[inputs]]")[0]
        spec.write_text(head + plain(extra, optimizer))
        sizes.append(len(onnx.load(project.job().graph).graph.node))
    without, with_decay, spared, with_bound = sizes
    assert without < spared < with_decay
    assert with_bound > without


@pytest.mark.parametrize(
    ("extra", "optimizer", "words"),
    [
        ('freeze = ["boby_*"]', ADAM, r"freeze 'boby_\*' is unknown; .* did you mean 'body_w'"),
        ('no_weight_decay = ["bias"]', ADAM, "no_weight_decay 'bias' is unknown; choices are"),
    ],
)
def test_a_pattern_without_a_match_is_one_line(
    declare: Declare, extra: str, optimizer: str, words: str
) -> None:
    """The nearest parameter is named."""
    with pytest.raises(ModelError, match=words) as caught:
        declare(TWO_HEADS, plain(extra, optimizer)).job()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "target", "words"),
    [
        ("softmax_cross_entropy", "{ classes = 9 }", r"at most as many classes in `target` as the "
         r"output has scores, 5 of shape \[16, 5\]; got 9"),
        ("mse", "{ low = 0, high = 1 }", None),
    ],
)  # fmt: skip
def test_a_target_must_fit_its_output(
    declare: Declare, loss: str, target: str, words: str | None
) -> None:
    """More classes than scores cannot be told; numbers go with any shape."""
    settings = f'loss = "{loss}"\noutput = "logits"\ntarget = {target}\n{ADAM}'
    declared = declare(TWO_HEADS, TWO_HEADS_SPEC + training(settings))
    if words is None:
        assert np.load(declared.job().batches)["target"].shape[1:] == (16, 5)
        return
    with pytest.raises(ModelError, match=words):
        declared.job()


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("g (float[batch, 4] x) => (float[batch] logits) <float[4] w = {@4}> "
         "{ logits = MatMul(x, w) }", r"demanded float class scores \[..., classes\]"),
        ("g (float[batch, 4] x) => (float[3, 5] logits) <float[3, 4] w = {@12}, float[4, 5] v = "
         "{@20}, int64[1] zero = {0}> { s = ReduceSum(x, zero) m = Mul(w, s) "
         "logits = MatMul(m, v) }", "first dimension is the batch, 16, or a multiple"),
    ],
)  # fmt: skip
def test_an_output_that_has_no_scores_for_the_examples_is_one_line(
    declare: Declare, graph: str, words: str
) -> None:
    """The loss, the output and its shape are named."""
    declared = declare(graph, plain(""))
    with pytest.raises(ModelError, match=words):
        declared.job()


def test_a_state_that_the_graph_has_not_is_one_line(declare: Declare) -> None:
    """A carried input of another name is told with those that there are."""
    settings = (
        f'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = {{ classes = 40 }}\n{ADAM}'
    )
    spec = LANGUAGE_SPEC.replace('input = "h"', 'input = "hidden"') + training(settings)
    with pytest.raises(ModelError, match=r"\[\[carried\]\]: input 'hidden' is unknown"):
        declare(LANGUAGE, spec).job()


def test_flattened_positions_are_fed(declare: Declare) -> None:
    """Scores [batch * sequence, classes] take a class for each row."""
    graph = LANGUAGE.replace(
        "logits = MatMul(c, decoder)", "f = Reshape(c, flat) logits = MatMul(f, decoder)"
    )
    graph = graph.replace("int64[1] one = {1}", "int64[1] one = {1}, int64[2] flat = {-1, 8}")
    graph = graph.replace("float[batch, sequence, 40] logits", "float[rows, 40] logits")
    settings = (
        f'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = {{ classes = 40 }}\n{ADAM}'
    )
    job = declare(graph, LANGUAGE_SPEC + training(settings)).job()
    assert np.load(job.batches)["target"].shape[1:] == (16 * 12,)
    before, after = losses(job, 60)
    assert after < 0.7 * before
