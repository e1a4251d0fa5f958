"""A training setting that contradicts the graph is refused in one line."""

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
    plain,
    training,
)
from epochcost.errors import ModelError


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
    """The message names a similar parameter or lists the choices."""
    with pytest.raises(ModelError, match=words) as caught:
        declare(TWO_HEADS, plain(extra, optimizer)).job()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("loss", "target", "words"),
    [
        ("softmax_cross_entropy", "{ classes = 9 }", r"at most as many classes in `target` as the "
         r"output has scores, 5 of shape \[16, 5\], got 9"),
        ("mse", "{ low = 0, high = 1 }", None),
    ],
)  # fmt: skip
def test_a_target_must_fit_its_output(
    declare: Declare, loss: str, target: str, words: str | None
) -> None:
    """A target with more classes than scores is refused; numbers fit any output shape."""
    settings = f'loss = "{loss}"\noutput = "logits"\ntarget = {target}\n{ADAM}'
    declared = declare(TWO_HEADS, TWO_HEADS_SPEC + training(settings))
    if words is None:
        assert np.load(declared.job().batches)["target"].shape[1:] == (16, 5)
        return
    with pytest.raises(ModelError, match=words):
        declared.job()


def test_a_state_that_the_graph_has_not_is_one_line(declare: Declare) -> None:
    """A ``[[carried]]`` input that the graph lacks is refused by name."""
    settings = (
        f'loss = "softmax_cross_entropy"\noutput = "logits"\ntarget = {{ classes = 40 }}\n{ADAM}'
    )
    spec = LANGUAGE_SPEC.replace('input = "h"', 'input = "hidden"') + training(settings)
    with pytest.raises(ModelError, match=r"\[\[carried\]\]: input 'hidden' is unknown"):
        declare(LANGUAGE, spec).job()
