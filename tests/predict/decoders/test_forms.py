"""Dimensions of language models."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.errors import SpecError
from epochcost.predict.decoders.forms import DecoderForm, form_of, read_forms
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


@pytest.mark.parametrize(
    ("part", "value", "whole"),
    [
        ("active_parameters", "9001", "parameters"),
        ("experts_per_token", "9", "experts"),
        ("windowed_layers", "3", "layers"),
    ],
)
def test_no_part_of_a_model_is_larger_than_the_whole(
    tmp_path: Path, part: str, value: str, whole: str
) -> None:
    """A table with more windowed layers than layers, or the like, is a fault with its line."""
    cells = {
        "model": "tiny", "layers": "2", "hidden": "64", "vocabulary": "100", "parameters": "9000",
        "active_parameters": "9000", "heads": "2", "head_size": "32", "experts": "8",
        "experts_per_token": "2", "kv_bytes_per_token_16_bit": "512", "sliding_window": "16",
        "windowed_layers": "2", part: value,
    }  # fmt: skip
    table = tmp_path / "decoders.csv"
    table.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    with pytest.raises(SpecError, match=rf"2:1: {part}: expected at most the {whole}, got"):
        read_forms(table)
