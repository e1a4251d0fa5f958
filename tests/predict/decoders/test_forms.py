"""Dimensions of language models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.predict.decoders.forms import DecoderForm, form_of
from epochcost.specs.catalogue import Catalogue


@given(st.integers(0, 60), st.integers(1, 40), st.integers(0, 4))
def test_layers_with_a_window_keep_the_latest_tokens(
    tokens: int, window: int, windowed: int
) -> None:
    """Kept tokens and pairs of tokens are those that we count layer by layer."""
    form = DecoderForm(4, 8, 8, 10**6, 10**6, 64, 100, window=window, windowed=windowed / 4)
    windows = [window] * windowed + [tokens] * (4 - windowed)
    assert 4 * form.kept_tokens(tokens) == pytest.approx(sum(min(tokens, each) for each in windows))
    # The diagonal counts half, as a triangle's area does.
    pairs = sum(min(at, each) + min(at + 1, each) for each in windows for at in range(tokens))
    assert 4 * form.attended_pairs(tokens) == pytest.approx(pairs)


def test_a_long_prompt_takes_little_cache_in_layers_with_a_window(catalogue: Catalogue) -> None:
    """Of 32,000 tokens, Gemma 3 27B keeps a fifth, since only 10 of its 62 layers keep all."""
    form = form_of(catalogue.decoder("gemma-3-27b"))
    assert form is not None
    assert form.kept_tokens(32_000) == pytest.approx((10 * 32_000 + 52 * 1_024) / 62)
