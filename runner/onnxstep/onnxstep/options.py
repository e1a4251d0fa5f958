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
    """How a model is trained, and where its step will run.

    ``output`` is what the loss is taken of (default: the only float output); several losses are a
    list of terms. Names of parameters take shell patterns in ``freeze``, ``wrt`` and
    ``no_weight_decay``: parameters that stay as they are (and running statistics, which their
    BatchNormalization then normalizes by), the only ones that are trained, and constants or
    buffers of the file to train too, and parameters that the optimizer does not decay.

    ``dimensions`` binds symbolic dimensions, ``seed`` makes Dropout repeatable, ``clip_norm``
    bounds the global norm of the gradients before they are decayed. With ``micro_batches`` above
    one the gradients of so many runs are averaged before each update. ``carry`` maps inputs to the
    outputs that they are in the next step, such as a recurrent state, which starts at zeros; no
    gradient flows from one step to another.

    ``provider`` allows forms that only that execution provider runs; without it any can.
    ``blocked_convolutions`` says that the CPU provider convolves images in blocks of channels, as
    ONNX Runtime's builds for x86-64 do.

    ``precision`` fp16 or bf16 computes in half precision what ``graphs.precision`` does not keep
    in float32; weights, loss, gradients' sums and update are float32, and the loss of fp16 is
    scaled as ``loss_scaling`` says (default: as PyTorch's GradScaler does). ``rematerialise``
    "sqrt" keeps only some values of the forward pass and computes the others again in the backward
    pass: less memory for more time.
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
