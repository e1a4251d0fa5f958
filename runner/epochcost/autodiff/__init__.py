"""From an ONNX graph to its gradients and a training step, in operators of stock ONNX Runtime.

``vjp_graph`` differentiates a model as written; ``training_step`` adds loss, optimizer and
training mode; ``evaluation_graph`` is the model with its loss. Needs onnx and numpy only.
"""

from epochcost.autodiff.mixed_precision import LossScaling, Precision
from epochcost.autodiff.objective import Term
from epochcost.autodiff.optimizers import Adadelta, Adagrad, Adam, Momentum, RmsProp, Sgd
from epochcost.autodiff.step import (
    Accumulation,
    TrainingStep,
    evaluation_graph,
    training_step,
)
from epochcost.autodiff.trained_set import LeftOut, TrainedSet
from epochcost.autodiff.update import Carried
from epochcost.autodiff.vjp import vjp_graph

__all__ = [
    "Accumulation",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Carried",
    "LeftOut",
    "LossScaling",
    "Momentum",
    "Precision",
    "RmsProp",
    "Sgd",
    "Term",
    "TrainedSet",
    "TrainingStep",
    "evaluation_graph",
    "training_step",
    "vjp_graph",
]
