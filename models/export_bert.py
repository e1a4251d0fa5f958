# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports BERT: base, large and a variant of 1.5 billion parameters, and a classifier on base.

Devlin et al. 2018, arXiv 1810.04805: a masked language model at gathered positions, whose decoder
is the matrix of word embeddings itself, and the next-sentence head. AI21 2020 (arXiv 2004.08900)
prices a BERT of 1.5 billion parameters without its shape: ours has GPT-2's, 48 layers of 1600. The
softmax is in the loss.
"""

from __future__ import annotations

import torch
from bert import DEVIATION, EPSILON, VOCABULARY, Bert, example
from exporting import Networks, export
from torch import nn
from transformer import first_values

# These have more weights than an exporter should hold; their form is proved on base.
LARGE = ("bert_large", "bert_1_5b")


class PreTraining(nn.Module):
    """Logits of masked words [batch, masked, vocabulary] and of the next sentence [batch, 2]."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.bert = Bert(layers, width, heads)
        self.transform = nn.Linear(width, width)
        self.transform_norm = nn.LayerNorm(width, EPSILON)
        self.decoder_bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.next_sentence = nn.Linear(width, 2)

    def forward(
        self,
        token_ids: torch.Tensor,
        segment_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        masked_positions: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``masked_positions`` [batch, masked] are those that the language model is asked for."""
        tokens, summary = self.bert(token_ids, segment_ids, attention_mask)
        batch, sequence = token_ids.shape
        first = torch.arange(batch, device=token_ids.device).unsqueeze(1) * sequence
        masked = tokens.index_select(0, (masked_positions + first).flatten())
        masked = self.transform_norm(nn.functional.gelu(self.transform(masked)))
        word = self.bert.embeddings.word.weight
        logits = nn.functional.linear(masked, word, self.decoder_bias)
        return logits.reshape(*masked_positions.shape, -1), self.next_sentence(summary)


class Classifier(nn.Module):
    """[batch, 2] logits of the summary, for fine-tuning."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.bert = Bert(layers, width, heads)
        self.dropout = nn.Dropout(0.1)
        self.classifier = nn.Linear(width, 2)

    def forward(
        self, token_ids: torch.Tensor, segment_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> torch.Tensor:
        """Logits of a batch of sequences."""
        _, summary = self.bert(token_ids, segment_ids, attention_mask)
        return self.classifier(self.dropout(summary))


def networks() -> Networks:
    """The networks by the names of their files, with example inputs."""
    masked = {**example(), "masked_positions": torch.randint(16, (3, 5))}
    return {
        "bert_base": (lambda: PreTraining(12, 768, 12), masked),
        "bert_large": (lambda: PreTraining(24, 1024, 16), masked),
        "bert_1_5b": (lambda: PreTraining(48, 1600, 25), masked),
        "bert_base_classifier": (lambda: Classifier(12, 768, 12), example()),
    }


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        with torch.device("meta" if name in LARGE else "cpu"):
            module = network()
        pre_training = isinstance(module, PreTraining)
        print(
            export(
                module,
                name,
                inputs,
                outputs=("masked_logits", "next_sentence_logits") if pre_training else ("logits",),
                dynamic={
                    key: {0: "batch", 1: "masked" if key == "masked_positions" else "sequence"}
                    for key in inputs
                },
                initial=first_values(DEVIATION),
            )
        )
