"""What every engine is given: a decoder, its prompts, and how many tokens it then adds."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.graphs.four_bits import draw_codes, in_four_bits
from epochcost.graphs.loading import load_model
from epochcost.graphs.parameters import materialise
from epochcost.specs.decoder import Decoder
from epochcost.specs.study import Precision

Array = NDArray[Any]
SEED = 20261123
_FILE = "case.json"


@dataclasses.dataclass(frozen=True)
class Case:
    """One comparison; ``graph`` is the path of the weightless file."""

    model: str
    graph: str
    vocabulary: int
    precision: Precision
    batch: int
    prompt: int
    tokens: int
    threads: int

    @property
    def middle(self) -> int:
        """Tokens in the cache when half of the answer is there."""
        return self.prompt + self.tokens // 2

    @property
    def longest(self) -> int:
        """Tokens of a sequence, prompt and answer together."""
        return self.prompt + self.tokens

    def prompts(self) -> Array:
        """Tokens [batch, prompt]; none is 0, which genai takes for padding."""
        drawn = np.random.default_rng(SEED)
        return drawn.integers(1, self.vocabulary, (self.batch, self.prompt), np.int64)

    def decoder(self) -> onnx.ModelProto:
        """The weightless graph in the precision of the case, of any batch and length."""
        graph = load_model(Path(self.graph))
        return in_four_bits(graph, integer_activations=True) if self.precision == "int4" else graph

    def save(self, folder: Path) -> None:
        """Write it where ``load`` finds it."""
        (folder / _FILE).write_text(json.dumps(dataclasses.asdict(self)), "utf-8")


def load(folder: Path) -> Case:
    """The case of a folder."""
    return Case(**json.loads((folder / _FILE).read_text("utf-8")))


def weights(graph: onnx.ModelProto) -> dict[str, Array]:
    """The values that every engine has, codes of four bits among them."""
    return {**materialise(graph, SEED), **draw_codes(graph, SEED)}


class Engine(Protocol):
    """Answers the prompts of a case, always with the most likely token."""

    def scores(self) -> Array:
        """Logits [2, batch, vocabulary] after the prompt, and after one more token."""

    def fresh(self) -> None:
        """Forget all sequences; not timed."""

    def prefill(self) -> None:
        """Read the prompts and choose the first token of each answer."""

    def decode(self) -> None:
        """Add the tokens that were chosen last, and choose the next ones."""


def form(model: Decoder) -> dict[str, int]:
    """The sizes of a decoder, as genai's configuration calls them."""
    return {
        "head_size": model.head_size,
        "hidden_size": model.heads * model.head_size,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.key_value_heads,
        "num_hidden_layers": model.layers,
    }
