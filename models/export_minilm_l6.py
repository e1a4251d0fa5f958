# /// script
# requires-python = ">=3.11"
# dependencies = ["onnx==1.23.2", "onnxscript==0.7.2", "torch==2.13.0"]
# ///
"""Exports the sentence encoder all-MiniLM-L6-v2: minilm_l6.onnx, and for pairs minilm_l6_pair.onnx.

A BERT of 6 layers of 384 (sentence-transformers/all-MiniLM-L6-v2, after Wang et al. 2020, arXiv
2002.10957). A sentence is the mean of its tokens, of length one; the pair's score is the cosine.
"""

from __future__ import annotations

import torch
from bert import DEVIATION, Bert, Encoder, example
from exporting import Networks, export
from torch import nn
from transformer import first_values

LAYERS, WIDTH, HEADS = 6, 384, 12


def pooled(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The mean of the tokens that the mask [batch, sequence] shows, made as long as one."""
    shown = mask.float().unsqueeze(2)
    total = (tokens.reshape(*mask.shape, -1) * shown).sum(1)
    mean = total / shown.sum(1).clamp(min=1e-9)
    return mean / mean.square().sum(1, keepdim=True).sqrt().clamp(min=1e-12)


class SentenceEncoder(nn.Module):
    """[batch, 384] vectors of length one, and the summary of BERT, which the library leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = Bert(LAYERS, WIDTH, HEADS)

    def forward(
        self, token_ids: torch.Tensor, segment_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean of each sentence's tokens that the mask shows."""
        tokens, summary = self.bert(token_ids, segment_ids, attention_mask)
        return pooled(tokens, attention_mask), summary


class PairScorer(nn.Module):
    """[batch] cosines of two sentences, both through one encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = Encoder(LAYERS, WIDTH, HEADS)

    def forward(
        self,
        first_ids: torch.Tensor,
        first_mask: torch.Tensor,
        second_ids: torch.Tensor,
        second_mask: torch.Tensor,
    ) -> torch.Tensor:
        """Both sentences of all pairs are one batch of twice the size; all are segment 0."""
        token_ids = torch.cat((first_ids, second_ids))
        mask = torch.cat((first_mask, second_mask))
        tokens = self.bert.rows(token_ids, torch.zeros_like(token_ids), mask)
        vectors = pooled(tokens, mask).reshape(2, -1, WIDTH)
        return (vectors[0] * vectors[1]).sum(1)


def networks() -> Networks:
    """The networks by the names of their files, with example inputs."""
    one, other = example(), example()
    pair = {
        "first_ids": one["token_ids"],
        "first_mask": one["attention_mask"],
        "second_ids": other["token_ids"],
        "second_mask": other["attention_mask"],
    }
    return {"minilm_l6": (SentenceEncoder, example()), "minilm_l6_pair": (PairScorer, pair)}


if __name__ == "__main__":
    for name, (network, inputs) in networks().items():
        print(
            export(
                network(),
                name,
                inputs,
                outputs=("similarity",)
                if name == "minilm_l6_pair"
                else ("sentence_embedding", "summary"),
                dynamic={key: {0: "batch", 1: "sequence"} for key in inputs},
                initial=first_values(DEVIATION),
            )
        )
