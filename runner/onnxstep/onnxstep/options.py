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
    """Settings of a training step: loss, optimizer, trained parameters and execution provider.

    ``loss`` is a name, a loss function or a list of terms. ``output`` names the model output from
    which a single loss is computed (default: the only float output). ``optimizer`` is a name or an
    Optimizer.

    The next three settings are lists of parameter names or shell patterns. ``freeze``: parameters
    that do not change; a BatchNormalization with frozen running statistics normalizes with these
    statistics. ``wrt``: train only these tensors, which may be constants or buffers of the file.
    ``no_weight_decay``: parameters to which weight decay does not apply.

    ``dimensions`` has sizes for symbolic dimensions. ``seed`` makes Dropout repeatable.
    ``clip_norm`` bounds the global 2-norm of the gradients, before weight decay. ``micro_batches``
    is the number of runs whose gradients are averaged before each update. ``carry`` maps an input
    to the output that feeds this input in the next step, such as a recurrent state. A carried input
    starts at zeros, and no gradient flows from one step to the previous step.

    ``provider``: the execution provider that will run the step. The graph may use operators that
    only this provider has; None allows portable operators only. ``blocked_convolutions``: use the
    CPU provider's convolution kernels for blocks of channels, which ONNX Runtime's x86-64 builds
    have. ``resumable``: on the CPU, keep ONNX Runtime's Dropout instead of a faster replacement.
    The seed of this Dropout goes up by one at each run, so a new session can draw the masks of any
    later run.

    With ``precision`` fp16 or bf16, the step computes in half precision, except for operators that
    ``graphs.precision`` keeps in float32. Weights, loss, sums of gradients and the update are
    float32. ``loss_scaling`` has the settings of dynamic loss scaling (default: those of PyTorch's
    GradScaler for fp16, else no scaling). With ``rematerialise`` "sqrt", the step saves memory: it
    stores part of the activations and recomputes the others in the backward pass.
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

    @property
    def terms(self) -> Sequence[Term]:
        """The terms of the loss; raises ModelError as ``terms_of`` does."""
        return terms_of(self.loss, self.output)

    @property
    def update_rule(self) -> Optimizer:
        """The optimizer, looked up if it is a name; raises ModelError for an unknown name."""
        if isinstance(self.optimizer, str):
            return choose("optimizer", OPTIMIZERS, self.optimizer)
        return self.optimizer
