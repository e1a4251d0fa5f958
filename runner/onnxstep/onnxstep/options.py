"""The settings of a training step."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from onnxstep.builder import Provider
from onnxstep.graphs.choices import choose
from onnxstep.losses import LossFunction
from onnxstep.mixed_precision import LossScaling, Precision
from onnxstep.objective import Term, terms_of
from onnxstep.optimizers import OPTIMIZERS, Optimizer
from onnxstep.passes.recompute import Rematerialisation


@dataclass(frozen=True, kw_only=True)
class StepOptions:
    """Settings of a training step: loss, optimizer, trained parameters and target provider.

    ``output`` is the output that the loss is computed from (default: the only float output).
    Several losses are a list of terms. ``optimizer`` is a name or an Optimizer.

    The following take parameter names or shell patterns. ``freeze``: parameters that do not change;
    a BatchNormalization whose running statistics are frozen normalizes with them. ``wrt``: train
    these only, constants and buffers of the file included. ``no_weight_decay``: parameters without
    decay.

    ``dimensions`` binds symbolic dimensions. ``seed`` makes Dropout repeatable. ``clip_norm``
    bounds the global 2-norm of the gradients before weight decay. ``micro_batches`` above 1
    averages the gradients of that many runs before each update. ``carry`` maps an input to the
    output that feeds it in the next step, such as a recurrent state; it starts at zeros, and no
    gradient flows between steps.

    ``provider`` allows operators that only this execution provider runs; None allows portable ones
    only. ``blocked_convolutions``: the CPU provider convolves images in blocks of channels, as ONNX
    Runtime's x86-64 builds do.

    ``precision`` fp16 or bf16 computes in half precision, except operators that
    ``graphs.precision`` keeps in float32. Weights, loss, gradient sums and update are float32.
    ``loss_scaling`` applies to fp16 (default: as PyTorch's GradScaler). ``rematerialise`` "sqrt"
    saves memory: it stores part of the activations and recomputes the others in the backward pass.
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
    carry: Mapping[str, str] = field(default_factory=dict)
    precision: Precision = "fp32"
    loss_scaling: LossScaling | None = None
    rematerialise: Rematerialisation = "none"

    @property
    def terms(self) -> Sequence[Term]:
        """The terms of the loss."""
        return terms_of(self.loss, self.output)

    @property
    def update_rule(self) -> Optimizer:
        """The optimizer; raises ModelError for an unknown name."""
        if isinstance(self.optimizer, str):
            return choose("optimizer", OPTIMIZERS, self.optimizer)
        return self.optimizer
