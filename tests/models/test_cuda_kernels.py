"""Each node of the catalogue's graphs has a kernel of ONNX Runtime's CUDA provider."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.execute.kernels import check_trials
from epochcost.plan.trial import Trial
from epochcost.plan.work import STEPS, Phase, Work
from epochcost.specs.loader import load_catalogue
from epochcost.specs.study import Mode, Precision
from onnxstep.graphs.cuda_kernels import KernelCheck
from onnxstep.graphs.loading import load_model

CATALOGUE = load_catalogue(Path(__file__).parents[2])
# Small graphs, one of each kind of layer; the others take minutes.
_LIGHT = {
    "cifar10-cnn", "cifar10-resnet8", "gpt2-decoder", "imdb-fasttext", "lstm-char-cnn-small",
    "markov-gru", "mnist-mlp", "qwen2.5-0.5b", "text-generator-keras",
}  # fmt: skip
_MODELS = [
    pytest.param(name, marks=() if name in _LIGHT else pytest.mark.slow)
    for name, model in CATALOGUE.models.items()
    if model.graph is not None
]
# Graphs that are refused, with the reason.
_REFUSED = {
    "training bf16": "half form of",  # convolutions and recurrent layers have none at opset 18
    "int4": "no experts",
}


def trials(name: str) -> Iterator[Trial]:
    """Trials on CUDA of a model in each mode or phase and precision that a GPU computes."""
    model = CATALOGUE.model(name)
    if model.decoder is not None:
        for precision in ("fp16", "bf16", "int4"):
            for phase in ("prefill", "decode"):
                yield trial(name, "inference", precision, Phase(name=phase, tokens=128))
        return
    for mode in ("inference", "training") if model.training else ("inference",):
        for precision in ("fp32", "fp16", "bf16"):
            yield trial(name, mode, precision, STEPS)


def trial(name: str, mode: Mode, precision: Precision, work: Work) -> Trial:
    """A trial with a batch of eight examples; digests and sampling do not matter here."""
    return Trial(
        model=name,
        mode=mode,
        provider="cuda",
        precision=precision,
        batch_size=8,
        seed=0,
        runtime="onnxruntime-gpu",
        producer="",
        graph_sha256="",
        spec_sha256="",
        relative_half_width=Decimal(1),
        minimum_samples=0,
        budget_seconds=Decimal(0),
        work=work,
    )


@pytest.mark.parametrize("name", _MODELS)
def test_every_node_has_a_cuda_kernel(name: str) -> None:
    """Only shape arithmetic and constants may be computed on the CPU."""
    checked = list(check_trials(CATALOGUE, trials(name)))
    assert checked
    for title, check in checked:
        if not isinstance(check, KernelCheck) or check.on_host:
            reason = next(text for kind, text in _REFUSED.items() if title.endswith(kind))
            assert reason in str(check)


def test_sequences_of_tensors_become_plain_nodes() -> None:
    """ELMo's export makes sequences, for which CUDA has no kernel; inference avoids them."""
    graph = load_model(CATALOGUE.graph_path(CATALOGUE.model("elmo"))).graph
    assert "SplitToSequence" in {node.op_type for node in graph.node}
    ((_, check),) = check_trials(CATALOGUE, [trial("elmo", "inference", "fp32", STEPS)])
    assert isinstance(check, KernelCheck)
    assert not check.on_host
