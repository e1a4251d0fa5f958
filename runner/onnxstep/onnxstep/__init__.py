"""Gradients and training steps of ONNX graphs, built from operators of stock ONNX Runtime.

The main functions are ``training_step``, ``evaluation_graph`` (the model with its loss) and
``vjp_graph`` (only gradients). The package needs only onnx and numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxstep.adapters import ADAPTERS, with_adapters
    from onnxstep.builder import Provider
    from onnxstep.graphs.loading import load_model
    from onnxstep.losses import SoftmaxCrossEntropy
    from onnxstep.mixed_precision import LossScaling, Precision
    from onnxstep.objective import Term, terms_of
    from onnxstep.optimizers import Adadelta, Adagrad, Adam, Momentum, RmsProp, Sgd
    from onnxstep.options import StepOptions
    from onnxstep.passes.recompute import Rematerialisation
    from onnxstep.step import (
        Accumulation,
        TrainingStep,
        evaluation_graph,
        first_values,
        training_step,
    )
    from onnxstep.trained_set import LeftOut, TrainedSet
    from onnxstep.update import Carried
    from onnxstep.vjp import vjp_graph

# Modules that together have all public names.
_MODULES = (
    "options",
    "step",
    "vjp",
    "adapters",
    "graphs.loading",
    "losses",
    "optimizers",
    "trained_set",
)
__all__ = [
    "ADAPTERS",
    "Accumulation",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Carried",
    "LeftOut",
    "LossScaling",
    "Momentum",
    "Precision",
    "Provider",
    "Rematerialisation",
    "RmsProp",
    "Sgd",
    "SoftmaxCrossEntropy",
    "StepOptions",
    "Term",
    "TrainedSet",
    "TrainingStep",
    "evaluation_graph",
    "first_values",
    "load_model",
    "terms_of",
    "training_step",
    "vjp_graph",
    "with_adapters",
]


# Modules are imported when a public name is first used, so importing onnxstep.errors is fast.
def __getattr__(name: str) -> Any:
    for module in _MODULES if name in __all__ else ():
        namespace = vars(import_module(f"onnxstep.{module}"))
        if name in namespace:
            return namespace[name]
    raise AttributeError(f"module 'onnxstep' has no attribute {name!r}")
