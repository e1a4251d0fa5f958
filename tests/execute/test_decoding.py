"""The demand of a decoder's token, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from epochcost.execute.sizing import DecoderSize, decoder_size
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from onnxstep.graphs.loading import load_model

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The committed specs."""
    return load_catalogue(ROOT)


def size_of(catalogue: Catalogue, name: str) -> DecoderSize:
    """The size of a committed decoder."""
    model = catalogue.model(name)
    return decoder_size(model, load_model(catalogue.graph_path(model)))


def test_a_token_of_smollm2_by_hand(catalogue: Catalogue) -> None:
    """Its blocks' weights and the head once, two operations each, and attention over 256 tokens."""
    size = size_of(catalogue, "smollm2-135m")
    block = 576 * (576 + 2 * 192) + 576 * 576 + 3 * 576 * 1536
    attention = 30 * 4 * 576 * 257
    decode = 2 * (30 * block + 576 * 49152) + attention
    assert size.decode_flops_per_token == pytest.approx(decode, rel=0.01)
    # The head sees the last token of a prompt alone.
    prefill = 2 * 30 * block + 30 * 4 * 576 * 256 + 2 * 576 * 49152 / 256
    assert size.prefill_flops_per_token == pytest.approx(prefill, rel=0.01)
    assert size.cache_bytes_per_token == 4 * 2 * 30 * 3 * 64
    assert size.read_bytes == pytest.approx(4 * (30 * block + 576 * 49152), rel=0.01)
    assert size.decode_bytes(4, 100) == size.read_bytes + 400 * size.cache_bytes_per_token


def test_the_largest_is_counted_without_its_weights(catalogue: Catalogue) -> None:
    """280 GB are read for a token of 70 billion parameters in fp32."""
    size = size_of(catalogue, "llama-3.1-70b")
    assert size.parameters == 70_553_706_496
    assert size.read_bytes == pytest.approx(4 * 69.5e9, rel=0.01)


def test_a_token_of_a_mixture_reads_the_chosen_experts(catalogue: Catalogue) -> None:
    """12.9 of 46.7 billion weights, as its authors state; several sequences choose more experts."""
    size = size_of(catalogue, "mixtral-8x7b")
    experts = 32 * 8 * 3 * 4096 * 14336
    assert size.idle_bytes == 4 * experts * 6 // 8
    assert size.read_bytes + size.looked_up_bytes == pytest.approx(4 * 12.9e9, rel=0.01)
    one, many = size.decode_bytes(1, 1), size.decode_bytes(64, 1)
    assert one == size.read_bytes + size.cache_bytes_per_token
    everything = size.read_bytes + size.idle_bytes + 64 * size.cache_bytes_per_token
    assert many == pytest.approx(everything, rel=1e-6)
    attention = 32 * 4 * 4096 * 257
    assert size.decode_flops_per_token == pytest.approx(size.read_bytes / 2 + attention, rel=0.01)
    assert size.memory_bytes(1, 1) > 2 * 4 * 46e9
