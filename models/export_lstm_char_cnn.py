# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the word-level language models that read characters: lstm_char_cnn and its small form.

The large one is what mkroutikov/tf-lstm-char-cnn ran for Kroutikov's article of 2016 and, like the
small one, comes from Kim et al. 2016 (arXiv 1508.06615). The softmax is in the loss. The states of
both LSTM layers are inputs and outputs, because the next 35 words of a text continue from them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from characters import CharacterCnn, Highway
from exporting import Networks, export
from recurrent import Lstm
from torch import nn

CHARACTERS = 51  # of the Penn Treebank, with the padding and the two marks around a word
WORDS = 10_000
WORD_LENGTH = 21  # of the longest word, the marks counted
STEPS = 35


class LstmCharCnn(nn.Module):
    """[batch, 35, 21] characters and the LSTM states to [batch, 35, 10000] logits and new states.

    Character features, highway layers, two LSTM layers with dropout on the output of each.
    """

    def __init__(self, maps: Sequence[int], highways: int, units: int) -> None:
        super().__init__()
        features = sum(maps)
        self.words = CharacterCnn(CHARACTERS, 15, range(1, len(maps) + 1), maps)
        self.highways = nn.ModuleList(Highway(features) for _ in range(highways))
        self.lstm1 = Lstm(features, units)
        self.lstm2 = Lstm(units, units)
        self.dropout1 = nn.Dropout(0.5)
        self.dropout2 = nn.Dropout(0.5)
        self.predict = nn.Linear(units, WORDS)
        self.features, self.units = features, units

    def forward(
        self,
        characters: torch.Tensor,
        h1: torch.Tensor,
        c1: torch.Tensor,
        h2: torch.Tensor,
        c2: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Logits for the word after each word, and the states after the last."""
        features = self.words(characters.transpose(0, 1).reshape(-1, WORD_LENGTH))
        for layer in self.highways:
            features = layer(features)
        steps, state1 = self.lstm1(features.reshape(STEPS, -1, self.features), (h1, c1))
        steps, state2 = self.lstm2(self.dropout1(steps), (h2, c2))
        hidden = self.dropout2(steps).transpose(0, 1).reshape(-1, self.units)
        logits = self.predict(hidden).reshape(-1, STEPS, WORDS)
        return logits, *state1, *state2


def large() -> LstmCharCnn:
    """LSTM-Char-Large of the paper's table 2."""
    return LstmCharCnn((50, 100, 150, 200, 200, 200, 200), highways=2, units=650)


def small() -> LstmCharCnn:
    """LSTM-Char-Small of the paper's table 2."""
    return LstmCharCnn((25, 50, 75, 100, 125, 150), highways=1, units=300)


def networks() -> Networks:
    """The networks by the names of their files, with example inputs."""
    return {
        "lstm_char_cnn": (large, _inputs(650)),
        "lstm_char_cnn_small": (small, _inputs(300)),
    }


def _inputs(units: int) -> dict[str, torch.Tensor]:
    states = {name: torch.rand(2, units) for name in ("h1", "c1", "h2", "c2")}
    return {"characters": torch.randint(0, CHARACTERS, (2, STEPS, WORD_LENGTH)), **states}


# Everything is drawn from U(-0.05, 0.05) but the biases of the LSTM, which TensorFlow starts at 0.
INITIAL = {
    "lstm?.bias": {"distribution": "constant", "scale": 0.0},
    "*": {"distribution": "uniform", "scale": 0.05},
}
OUTPUTS = ("logits", "h1_after", "c1_after", "h2_after", "c2_after")

if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, outputs=OUTPUTS, initial=INITIAL))
