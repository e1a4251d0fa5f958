"""Memory of trainings, compared with published peaks and hand-computed sums."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from epochcost.analysis.finetune_memory import Counts, counts_of, memory_parts, needed_bytes
from epochcost.predict.decoders.forms import form_of
from epochcost.predict.decoders.training_rows import Method, TrainingQuestion
from epochcost.specs.decoder import Decoder
from epochcost.specs.loader import load_catalogue

DEVICE = load_catalogue(Path(__file__).parents[2]).devices["a100-sxm4-80-gb"]

LLAMA_7B = Decoder(
    layers=32, heads=32, key_value_heads=32, head_size=128, vocabulary=32000, context=4096,
    hidden=4096, intermediate=11008, parameters=6738415616,
)  # fmt: skip
LLAMA_3_8B = Decoder(
    layers=32, heads=32, key_value_heads=8, head_size=128, vocabulary=128256, context=131072,
    hidden=4096, intermediate=14336, parameters=8030261248,
)  # fmt: skip
QWEN_7B = LLAMA_7B.model_copy(
    update={"vocabulary": 151936, "context": 8192, "parameters": 7721324544}
)
QWEN_14B = Decoder(
    layers=40, heads=40, key_value_heads=40, head_size=128, vocabulary=152064, context=8192,
    hidden=5120, intermediate=13696, parameters=14167290880,
)  # fmt: skip
GPT_2 = Decoder(
    layers=12, heads=12, key_value_heads=12, head_size=64, vocabulary=50257, context=1024,
    hidden=768, intermediate=3072, parameters=124439808,
)  # fmt: skip


def setting(
    decoder: Decoder,
    method: Method,
    length: int,
    sequences: int,
    checkpointing: bool,
    devices: int = 1,
) -> TrainingQuestion:
    """A training of a decoder, sharded over several devices."""
    form = form_of(decoder)
    assert form is not None
    return TrainingQuestion(
        form, "", method, "bf16", DEVICE, devices, length, length * sequences,
        recomputed=float(checkpointing), sharded=devices > 1,
    )  # fmt: skip


def counts(decoder: Decoder) -> Counts:
    """The counts of a decoder with a known form."""
    form = form_of(decoder)
    assert form is not None
    return counts_of(decoder, form)


@pytest.mark.parametrize(
    ("decoder", "method", "length", "sequences", "checkpointing", "rank", "gigabytes"),
    [
        # Lightning-AI/litgpt@26857050fe: tutorials/resource-tables.md; up to 1,300 tokens.
        (LLAMA_7B, "lora", 1300, 1, False, 8, 21.3),
        (LLAMA_7B, "lora", 1300, 2, False, 8, 29.07),
        (LLAMA_7B, "qlora", 1300, 1, False, 8, 14.14),
        # QwenLM/Qwen: README.md, Q-LoRA and LoRA of rank 64.
        (QWEN_7B, "lora", 256, 1, True, 64, 20.1),
        (QWEN_7B, "lora", 8192, 1, True, 64, 36.6),
        (QWEN_7B, "qlora", 2048, 1, True, 64, 13.9),
        (QWEN_14B, "lora", 2048, 1, True, 64, 37.4),
        (QWEN_14B, "qlora", 4096, 1, True, 64, 23.0),
        # unslothai/unsloth: README.md, measured by LLaMA-Factory.
        (LLAMA_7B, "lora", 1024, 4, True, 8, 18.0),
        (LLAMA_7B, "qlora", 1024, 4, True, 8, 9.0),
    ],
)
def test_published_peaks(
    decoder: Decoder,
    method: Method,
    length: int,
    sequences: int,
    checkpointing: bool,
    rank: int,
    gigabytes: float,
) -> None:
    """The count is within a sixth of each published peak."""
    training = setting(decoder, method, length, sequences, checkpointing)
    assert needed_bytes(counts(decoder), training, rank) == pytest.approx(
        gigabytes * 1e9, rel=1 / 6
    )


def test_the_parts_add_up() -> None:
    """The listed parts, with CUDA's context and gaps, are the memory that a training needs."""
    training = setting(LLAMA_3_8B, "lora", 512, 4, False)
    parts = [*memory_parts(counts(LLAMA_3_8B), training, 16)]
    assert sum(part.bytes for part in parts) == needed_bytes(counts(LLAMA_3_8B), training, 16)
    assert parts[-1].bytes == pytest.approx(
        0.75 * 2**30 + 0.05 * sum(part.bytes for part in parts[:-1])
    )
    assert parts[-1].how == "0.75 GiB plus 5 % of all other parts"


def test_parts_by_hand() -> None:
    """The parts of QLoRA with rank 16 on Llama 3.1 8B, on each of two devices, equal sums by hand.

    A weight of 4 bits takes 0.516 bytes. Tables of 2 x 128,256 x 4096 weights take 2 bytes each.
    """
    training = setting(LLAMA_3_8B, "qlora", 512, 2, False, 2)
    *listed, _ = memory_parts(counts(LLAMA_3_8B), training, 16)
    parts = {part.name: part for part in listed}
    weights = 0.515869 * (8030261248 - 1050673152) + 2 * 1050673152
    adapters = 16 * 32 * (4 * 4096 + 2 * 4096 + 2 * 1024 + 3 * (4096 + 14336))
    layer = 16 * 4096 + 2 * (3 * 4096 + 2 * 1024 + 4 * 14336) + 2 * 16 * 7
    assert {name: part.bytes for name, part in parts.items()} == {
        "weights": pytest.approx(weights / 2, rel=1e-6),
        "adapters": pytest.approx(2 * adapters / 2, rel=1e-4),
        "gradients": pytest.approx(2 * adapters / 2, rel=1e-4),
        "optimizer": pytest.approx(12 * adapters / 2, rel=1e-4),
        "gathered layers": pytest.approx(2 * weights / 32, rel=1e-6),
        "activations": pytest.approx(1024 * 32 * layer, rel=1e-4),
        "logits": 1024 * 128256 * (2 + 4 + 4),
    }
    assert parts["activations"].how == "209 kB a token in 32 layers, 1,024 tokens"
    eight = replace(training, method="full", precision="fp8", sharded=False)
    full = {part.name: part.bytes for part in memory_parts(counts(LLAMA_3_8B), eight, 16)}
    assert "adapters" not in full
    assert "gathered layers" not in full
    assert full["weights"] == 2 * 8030261248 + 8030261248 - 1050673152
    assert (full["gradients"], full["optimizer"]) == (2 * 8030261248, 12 * 8030261248)


def test_form_follows_from_the_number_of_parameters() -> None:
    """GPT-2's head is tied to its embeddings, Llama's is not."""
    assert counts(GPT_2).embeddings == 768 * 50257
    assert counts(LLAMA_3_8B).embeddings == 2 * 4096 * 128256
    assert counts(GPT_2).active_width == pytest.approx(3072, rel=0.05)
