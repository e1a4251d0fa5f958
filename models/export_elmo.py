# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the bidirectional language model of ELMo, 93.6 million parameters: elmo.onnx.

Peters et al. 2018, "Deep contextualized word representations" (arXiv 1802.05365), as
allenai/bilm-tf trains it on 20 words at a time: a character CNN of 2048 maps, two highway layers, a
projection to 512, and in each direction two LSTM layers of 4096 units whose outputs are projected
to 512. ONNX's LSTM has no projection, so the layers are unrolled over the 20 steps.

The source's softmax has 793,471 words, of which a step takes the loss, and updates the rows, of
8,192 drawn ones and the true one. Here a layer of 8,193 classes stands for them: the work of a
step without the table. The softmax is in the loss.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from characters import CharacterCnn, Highway
from exporting import Networks, export
from torch import nn

CHARACTERS, WORD_LENGTH = 261, 50
MAPS = (32, 32, 64, 128, 256, 512, 1024)  # of widths 1 to 7
STEPS, UNITS, SIZE = 20, 4096, 512
CANDIDATES = 8192 + 1
LIMIT = 3.0  # of the elements of cells and of projected outputs

State = tuple[torch.Tensor, torch.Tensor]


class ProjectedLstm(nn.Module):
    """[batch] x 512 per step and a state (h, c) to outputs of 512 and the state after.

    Sak, Senior and Beaufays, "Long Short-Term Memory Recurrent Neural Network Architectures for
    Large Scale Acoustic Modeling" (Interspeech 2014), with the clipping of bilm-tf.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(SIZE, 4 * UNITS)
        self.state = nn.Linear(SIZE, 4 * UNITS, bias=False)
        self.projection = nn.Linear(UNITS, SIZE, bias=False)

    def forward(self, steps: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """[20 * batch, 512] in order of time to the same; the gates are i, g, f, o."""
        h, c = state
        outputs = []
        for arrived in self.inputs(steps).reshape(STEPS, -1, 4 * UNITS).unbind(0):
            i, g, f, o = (arrived + self.state(h)).chunk(4, dim=1)
            c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
            c = c.clamp(-LIMIT, LIMIT)
            h = self.projection(torch.sigmoid(o) * torch.tanh(c)).clamp(-LIMIT, LIMIT)
            outputs.append(h)
        return torch.cat(outputs), (h, c)


class Direction(nn.Module):
    """Two LSTM layers, dropout on the input of each, the second added to its input."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm1, self.lstm2 = ProjectedLstm(), ProjectedLstm()
        self.dropout1, self.dropout2 = nn.Dropout(0.1), nn.Dropout(0.1)
        self.dropout3 = nn.Dropout(0.1)

    def forward(
        self, words: torch.Tensor, state1: State, state2: State
    ) -> tuple[torch.Tensor, State, State]:
        """[20 * batch, 512] in order of time to the same, and the states after."""
        steps, state1 = self.lstm1(self.dropout1(words), state1)
        steps = self.dropout2(steps)
        outputs, state2 = self.lstm2(steps, state2)
        return self.dropout3(outputs + steps), state1, state2


class ElmoCharacters(CharacterCnn):
    """The maximum comes before the activation, which is ReLU."""

    def pool(self, convolved: torch.Tensor) -> torch.Tensor:
        """[words, maps, places] to [words, maps]."""
        return torch.relu(convolved.amax(2))


class Elmo(nn.Module):
    """[batch, 20, 50] characters of a text and of its reverse to [batch, 20, 8193] logits of each.

    The characters' network and the softmax serve both directions; every layer's state goes in and
    comes out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = ElmoCharacters(CHARACTERS, 16, range(1, 8), MAPS)
        self.highways = nn.ModuleList(Highway(sum(MAPS)) for _ in range(2))
        self.projection = nn.Linear(sum(MAPS), SIZE)
        self.onward, self.reverse = Direction(), Direction()
        self.predict = nn.Linear(SIZE, CANDIDATES)

    def forward(
        self,
        characters: torch.Tensor,
        characters_reverse: torch.Tensor,
        h: torch.Tensor,
        c: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Logits for the word after each word, those of the reverse, and the states after.

        h is [batch, 4, 512] and c [batch, 4, 4096], of the two layers onward, then in reverse.
        """
        states = list(zip(h.unbind(1), c.unbind(1), strict=True))
        onward, after = self._direction(self.onward, characters, states[:2])
        reverse, after_reverse = self._direction(self.reverse, characters_reverse, states[2:])
        h_after, c_after = zip(*after, *after_reverse, strict=True)
        return onward, reverse, torch.stack(h_after, 1), torch.stack(c_after, 1)

    def _direction(
        self, direction: Direction, characters: torch.Tensor, states: Sequence[State]
    ) -> tuple[torch.Tensor, list[State]]:
        features = self.words(characters.transpose(0, 1).reshape(-1, WORD_LENGTH))
        for layer in self.highways:
            features = layer(features)
        steps, *after = direction(self.projection(features), *states)
        logits = self.predict(steps).reshape(STEPS, -1, CANDIDATES).transpose(0, 1)
        return logits, after


def networks() -> Networks:
    """The network by the name of its file, with example inputs."""
    words = {
        name: torch.randint(0, CHARACTERS, (2, STEPS, WORD_LENGTH))
        for name in ("characters", "characters_reverse")
    }
    states = {"h": torch.rand(2, 4, SIZE), "c": torch.rand(2, 4, UNITS)}
    return {"elmo": (Elmo, {**words, **states})}


OUTPUTS = ("logits", "logits_reverse", "h_after", "c_after")
# The LSTM's are TensorFlow's default, Glorot-uniform over input and state together.
INITIAL = {
    "words.characters.weight": {"distribution": "uniform", "scale": 1.0},
    "words.convolutions.*.weight": {"distribution": "uniform", "scale": 0.05},
    "highways.*.weight": {"distribution": "normal", "scale": sum(MAPS) ** -0.5},
    "projection.weight": {"distribution": "normal", "scale": sum(MAPS) ** -0.5},
    "*.inputs.weight": {"distribution": "uniform", "scale": (6 / (2 * SIZE + 4 * UNITS)) ** 0.5},
    "*.state.weight": {"distribution": "uniform", "scale": (6 / (2 * SIZE + 4 * UNITS)) ** 0.5},
    "predict.weight": {"distribution": "normal", "scale": SIZE**-0.5},
}

if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(export(network(), name, inputs, outputs=OUTPUTS, initial=INITIAL))
