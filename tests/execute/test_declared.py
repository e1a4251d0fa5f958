"""What a spec can declare really runs: built, fed and trained for some steps, the loss falls."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from declared_model import (
    ADAM,
    LANGUAGE,
    LANGUAGE_SPEC,
    TWO_HEADS,
    TWO_HEADS_SPEC,
    Declare,
    losses,
    plain,
    training,
)
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Stepper, graph_inputs, initial_parameters


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
