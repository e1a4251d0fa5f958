"""PyTorch's step of the module that a model's ONNX file was exported from.

The exporters write an LSTM as its equations. ``nn.LSTM`` replaces them here, since it is the usual
module and oneDNN fuses it. Optimizers are those of ``torch.optim`` with their defaults for speed
(PyTorch chooses ``foreach``); the contender ``fused`` sets ``fused=True``, which RMSprop and
Adadelta do not have.
"""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import torch
from torch import nn

from steps.work import Batch, Term, Work

MODELS = Path(__file__).parents[2] / "models"
_HALVES = {"fp16": torch.float16, "bf16": torch.bfloat16}
# Order of gates: input, output, forget, cell in ONNX; input, forget, cell, output in PyTorch.
_GATES = (0, 2, 3, 1)
_OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
}


class FusedLstm(nn.Module):
    """``nn.LSTM`` in place of a layer of ``models/recurrent.py``: same weights and results.

    The second bias is the constant of the forget gate and is not trained.
    """

    def __init__(self, spelled: Any) -> None:
        super().__init__()
        units, inputs = spelled.units, spelled.input_weight.shape[2]
        self.directions = spelled.directions
        self.lstm = nn.LSTM(inputs, units, bidirectional=self.directions == 2)
        constant = torch.zeros(4, units)
        constant[1] = spelled.forget_bias
        with torch.no_grad():
            for index, suffix in enumerate(("", "_reverse")[: self.directions]):
                self._set(f"weight_ih_l0{suffix}", _reordered(spelled.input_weight[index]))
                self._set(f"weight_hh_l0{suffix}", _reordered(spelled.state_weight[index]))
                self._set(f"bias_ih_l0{suffix}", _reordered(spelled.bias[index]))
                self._set(f"bias_hh_l0{suffix}", constant.flatten())
                getattr(self.lstm, f"bias_hh_l0{suffix}").requires_grad_(False)

    def _set(self, name: str, value: torch.Tensor) -> None:
        getattr(self.lstm, name).copy_(value)

    def forward(self, steps: torch.Tensor, state: Any = None) -> tuple[torch.Tensor, Any]:
        """As ``recurrent.Lstm``: states are [batch, directions * units]."""
        initial = None if state is None else tuple(part.unsqueeze(0) for part in state)
        outputs, after = self.lstm(steps, initial)
        if self.directions == 1:
            return outputs, tuple(part.squeeze(0) for part in after)
        return outputs, tuple(torch.cat([part[0], part[1]], -1) for part in after)


def _reordered(weight: torch.Tensor) -> torch.Tensor:
    gates = weight.chunk(4)
    return torch.cat([gates[index] for index in _GATES])


class PyTorch:
    """PyTorch in eager mode as ``work.Contender``."""

    compiled = False
    version = f"torch=={torch.__version__}, cudnn {torch.backends.cudnn.version()}"
    fused: Mapping[str, bool] = MappingProxyType({})

    def __init__(self, work: Work, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.backends.cuda.matmul.allow_tf32 = work.precision == "tf32"
        torch.backends.cudnn.allow_tf32 = work.precision == "tf32"
        self._work = work
        self._module = loaded(work).to(work.device)
        self._batches = [_tensors(batch) for batch in work.batches()]
        self._optimizer: Any = None
        self._loss: Any = None

    def start(self) -> None:
        """Create the optimizer, and compile the module for torch.compile."""
        work = self._work
        self._network = torch.compile(self._module) if self.compiled else self._module
        self._trained = [p for p in self._module.parameters() if p.requires_grad]
        self._optimizer = optimizer(work, self._module, **self.fused)
        self._scaler = torch.amp.GradScaler(work.device, enabled=work.precision == "fp16")
        self._fresh: Iterator[Any] = itertools.cycle(self._batches)
        first = self._batches[0]
        self._held = {name: value.to(work.device, copy=True) for name, value in first.items()}
        for name in work.carried:
            self._held[name] = torch.zeros(work.carried_shape, device=work.device)

    def __call__(self) -> None:
        """Take one step: copy a fresh batch, then forward, loss, backward, update."""
        work = self._work
        for name, value in next(self._fresh).items():
            self._held[name].copy_(value)
        self._optimizer.zero_grad()
        half = _HALVES.get(work.precision)
        with torch.autocast(work.device, half, enabled=half is not None):
            results = self._network(*(self._held[name] for name in work.inputs))
            outputs = dict(zip(work.outputs, _listed(results), strict=True))
            total = sum(term.weight * _loss(term, outputs, self._held) for term in work.terms)
        self._scaler.scale(total).backward()
        if work.clip_norm is not None:
            self._scaler.unscale_(self._optimizer)
            nn.utils.clip_grad_norm_(self._trained, work.clip_norm)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        for before, after in work.carried.items():
            self._held[before].copy_(outputs[after].detach())
        self._loss = total.detach()

    def finish(self) -> None:
        """Wait for what is queued on the GPU."""
        if self._work.device != "cpu":
            torch.cuda.synchronize()

    def loss(self) -> float:
        """The loss of the last step."""
        return float(self._loss)


class Compiled(PyTorch):
    """The same step through torch.compile with default settings."""

    compiled = True


class Fused(PyTorch):
    """The eager step with a fused optimizer: one kernel updates each parameter."""

    fused = MappingProxyType({"fused": True})


def network(stem: str) -> tuple[nn.Module, Any]:
    """The module that ``models/<stem>.onnx`` was exported from, and examples of its inputs."""
    manifest = tomllib.loads((MODELS / "manifest.toml").read_text("utf-8"))
    make, inputs = _import(MODELS / manifest[stem]["exporter"]).networks()[stem]
    return make(), inputs


def loaded(work: Work) -> nn.Module:
    """The module in training mode with the case's first weights."""
    module, _ = network(work.network)
    values = {name: torch.from_numpy(value) for name, value in work.weights().items()}
    unknown = values.keys() - module.state_dict().keys()
    assert not unknown, f"the module of {work.network} has no {sorted(unknown)}"
    module.load_state_dict(values, strict=False)
    _fuse_lstms(module)
    for part in module.modules():
        if isinstance(part, nn.Dropout) and not work.dropout:
            part.p = 0.0
    return module.train()


def optimizer(work: Work, module: nn.Module, **fused: bool) -> torch.optim.Optimizer:
    """PyTorch's optimizer with the spec's settings, most of which have equal names in PyTorch."""
    settings = dict(work.optimizer)
    name, rate = settings.pop("name"), settings.pop("learning_rate")
    terms = {"epsilon": "eps", "rho": "alpha" if name == "rmsprop" else "rho"}
    options = {terms.get(key, key): value for key, value in settings.items()}
    if "beta1" in options:
        options["betas"] = (options.pop("beta1"), options.pop("beta2"))
    return _OPTIMIZERS[name](_groups(work, module), lr=rate, **options, **fused)


def _groups(work: Work, module: nn.Module) -> list[dict[str, Any]]:
    groups: dict[bool, list[nn.Parameter]] = {}
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            groups.setdefault(name in work.undecayed, []).append(parameter)
    return [
        {"params": tensors, **({"weight_decay": 0.0} if undecayed else {})}
        for undecayed, tensors in groups.items()
    ]


def _fuse_lstms(module: nn.Module) -> None:
    for part in list(module.modules()):
        for name, child in list(part.named_children()):
            if type(child).__name__ == "Lstm":
                setattr(part, name, FusedLstm(child))


def _loss(
    term: Term, outputs: Mapping[str, torch.Tensor], tensors: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    scores, target = outputs[term.output], tensors[term.target]
    if term.loss == "sigmoid_cross_entropy":
        return nn.functional.binary_cross_entropy_with_logits(scores, target)
    assert term.loss == "softmax_cross_entropy", f"no loss here is called {term.loss}"
    return nn.functional.cross_entropy(scores.flatten(0, -2), target.flatten())


def _tensors(batch: Batch) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(value) for name, value in batch.items()}


def _listed(outputs: Any) -> list[torch.Tensor]:
    return [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)


def _import(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
