"""The settings of a training step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from onnxstep.builder import Provider
from onnxstep.errors import ModelError
from onnxstep.graphs.choices import choose
from onnxstep.losses import LossFunction
from onnxstep.mixed_precision import LossScaling, Precision
from onnxstep.objective import Term, terms_of
from onnxstep.optimizers import OPTIMIZERS, Optimizer
from onnxstep.passes.recompute import Rematerialisation

# The Dropout nodes of a model get successive seeds, which ONNX stores in 64 bits with a sign.
_SEEDS = 2**62


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Settings of a training step: loss, optimizer, trained parameters and execution provider.

    ``output`` names the model output for a single ``loss``; None means the only float output.
    ``freeze``, ``wrt`` and ``no_weight_decay`` list names or shell patterns of tensors. If ``wrt``
    has items, only these are trained; they may be constants or buffers. A BatchNormalization whose
    running statistics are frozen uses them instead of the batch's.

    ``dimensions`` has sizes for symbolic dimensions. ``seed`` makes Dropout repeatable.
    ``clip_norm`` bounds the global 2-norm of the gradients, before weight decay. An update averages
    the gradients of ``micro_batches`` runs. ``carry`` maps an input, zero at first, to the output
    that feeds it in the next step. No gradient flows between steps.

    If ``provider`` is None, the graph has only portable operators. ``blocked_convolutions`` allows
    faster CPU kernels (NCHWc), which ONNX Runtime's x86-64 builds have. With ``resumable``, a step
    for the CPU uses ONNX Runtime's slower Dropout, so that a resumed training draws the same masks
    as an uninterrupted one.

    With ``precision`` fp16 or bf16, weights, loss and update are still float32. ``loss_scaling``
    None means PyTorch's GradScaler settings for fp16, else no scaling. ``rematerialise`` "sqrt"
    saves memory by recomputing activations.
    """

    loss: str | LossFunction | Sequence[Term] = "softmax_cross_entropy"
    optimizer: str | Optimizer = "sgd"
    output: str | None = None
    freeze: Collection[str] = ()
    wrt: Collection[str] = ()
    no_weight_decay: Collection[str] = ()
    dimensions: Mapping[str, int] | None = None
    seed: int | None = None
    clip_norm: float | None = None
    micro_batches: int = 1
    provider: Provider | None = None
    blocked_convolutions: bool = False
    resumable: bool = False
    carry: Mapping[str, str] = field(default_factory=dict)
    precision: Precision = "fp32"
    loss_scaling: LossScaling | None = None
    rematerialise: Rematerialisation = "none"

    def __post_init__(self) -> None:
        """Raise ModelError for a setting that is out of range or not among the allowed values."""
        for name, kind in (("precision", Precision), ("rematerialise", Rematerialisation)):
            choose(name, dict.fromkeys(get_args(kind)), getattr(self, name))
        if self.provider is not None:
            choose("provider", dict.fromkeys(get_args(Provider)), self.provider)
        if self.clip_norm is not None and not self.clip_norm > 0:
            raise ModelError(f"clip_norm: expected a positive number, got {self.clip_norm}")
        if self.micro_batches < 1:
            raise ModelError(f"micro_batches: expected 1 or more, got {self.micro_batches}")
        # For a float, ``in range(…)`` would compare the numbers one by one.
        is_integer = hasattr(self.seed, "__index__")
        if self.seed is not None and not (is_integer and 0 <= self.seed < _SEEDS):
            raise ModelError(f"seed: expected an integer from 0 to 2**62 - 1, got {self.seed}")

    @property
    def terms(self) -> Sequence[Term]:
        """The terms of the loss; ``terms_of`` lists the errors."""
        return terms_of(self.loss, self.output)

    @property
    def scaling(self) -> LossScaling | None:
        """Settings of the loss scale; None if the step has no loss scale."""
        is_fp16 = self.precision == "fp16"
        return self.loss_scaling or (LossScaling() if is_fp16 else None)

    @property
    def update_rule(self) -> Optimizer:
        """The optimizer, looked up if it is a name; raises ModelError for an unknown name."""
        if isinstance(self.optimizer, str):
            return choose("optimizer", OPTIMIZERS, self.optimizer)
        return self.optimizer
