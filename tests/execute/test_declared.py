"""Each training setting of a spec is built and trained for some steps, and the loss falls."""

from __future__ import annotations

import numpy as np
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
    """Tokens in, a class at each position, a carried state, a clipped gradient."""
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
    """Ignored positions have the label -100, and the loss skips them."""
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
    """Optimizer states start at the declared values while the learning rate decays."""
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
    """Inference carries the state from step to step and outputs only the logits."""
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


AUXILIARY = """[[training.auxiliary]]
loss = "{loss}"
output = "numbers"
target = {{ low = -2, high = 2 }}
weight = 0.5
"""


@pytest.mark.parametrize("loss", ["mse", "l1", "huber"])
def test_a_model_of_two_losses_learns(declare: Declare, loss: str) -> None:
    """A class target and a number target have a loss each; training lowers the weighted sum."""
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
    """1,000 examples in batches of 16 give 62 steps an epoch; from step 62 the rate is a tenth."""
    extra = 'schedule = { name = "step", epochs = [1], factors = [0.1], warm_up_steps = 2 }'
    job = declare(TWO_HEADS, plain(extra)).job()
    assert job.scalars == {}
    assert job.series is not None
    rates = np.load(job.series)["learning_rate"]
    np.testing.assert_allclose(rates[[0, 1, 61, 62, -1]], [0.01, 0.02, 0.02, 0.002, 0.002])
    before, after = losses(job, 60)
    assert after < before
