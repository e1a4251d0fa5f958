"""Look up the dimensions of language models by their names in tables of published rates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from epochcost.predict.rates import count_or, positive_number, read_table, whole_number
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.decoder import Decoder

_SUFFIXES = frozenset(
    {"instruct", "hf", "it", "chat", "base", "meta", "bnb", "4bit", "gptq", "awq", "pretrained"}
)
_RELEASE = re.compile(r"v0\.\d+")
_COUNTS = ("layers", "hidden", "vocabulary", "parameters", "active_parameters")
_HEADS = ("heads", "head_size")
# Columns that may be missing or empty, for 0.
_OPTIONAL = ("experts", "experts_per_token", "sliding_window", "windowed_layers")
# Columns that count a part of what another column counts.
_PARTS = {
    "active_parameters": "parameters",
    "experts_per_token": "experts",
    "windowed_layers": "layers",
}
_CACHE = "kv_bytes_per_token_16_bit"
_FORM_COLUMNS = ("model", *_COUNTS, *_HEADS, "experts", "experts_per_token", _CACHE)
_BYTES_OF_16_BITS = 2


@dataclass(frozen=True, slots=True)
class DecoderForm:
    """Dimensions of a language model that its times depend on; ``experts`` is 0 for a dense model.

    ``attention`` is the width of all attention heads together. A token uses ``active_parameters``,
    and stores ``cached_numbers_per_token`` numbers (keys and values). The share ``windowed`` of the
    layers attends only to the latest ``window`` tokens, and caches only these.
    """

    layers: int
    hidden: int
    attention: int
    parameters: int
    active_parameters: int
    cached_numbers_per_token: int
    vocabulary: int
    experts: int = 0
    experts_per_token: int = 0
    window: int = 0
    windowed: float = 0.0

    def kept_tokens(self, tokens: float) -> float:
        """The number of tokens of a sequence that the cache keeps, as a mean over all layers."""
        return tokens - self.windowed * max(tokens - self.window, 0.0)

    def attended_pairs(self, tokens: float) -> float:
        """Twice the number of (query, key) pairs of ``tokens`` tokens, as a mean over all layers.

        Without windows, n tokens have about n² / 2 pairs, so the result is n².
        """
        return tokens**2 - self.windowed * max(tokens - self.window, 0.0) ** 2

    @property
    def expert_parameters(self) -> float:
        """Number of parameters of all experts of a mixture of experts; 0 for other models."""
        if self.experts <= self.experts_per_token:
            return 0.0
        unused = self.parameters - self.active_parameters
        return min(unused / (1 - self.experts_per_token / self.experts), self.parameters)


def form_of(decoder: Decoder) -> DecoderForm | None:
    """Dimensions of a decoder in a spec; None if ``hidden`` or ``parameters`` is missing."""
    if decoder.hidden is None or decoder.parameters is None:
        return None
    return DecoderForm(
        decoder.layers,
        decoder.hidden,
        decoder.heads * decoder.head_size,
        decoder.parameters,
        decoder.active_parameters or decoder.parameters,
        decoder.cached_numbers_per_token,
        decoder.vocabulary,
        decoder.experts or 0,
        decoder.experts_per_token or 0,
        decoder.window or 0,
        (decoder.windowed_layers or 0) / decoder.layers,
    )


@cache
def plain_name(name: str) -> str:
    """A model's name without owner, brackets, punctuation and suffixes such as "chat"."""
    text = re.sub(r"\(.*?\)", " ", name.casefold().rsplit("/", 1)[-1])
    parts = [part for part in re.split(r"[^a-z0-9.]+", text) if part not in _SUFFIXES]
    return "".join(re.sub(r"^v(?=\d)", "", part) for part in parts if not _RELEASE.fullmatch(part))


def catalogue_forms(catalogue: Catalogue) -> Mapping[str, DecoderForm]:
    """Dimensions of all models in the tables of token rates and in the specs, by ``plain_name``."""
    named: list[tuple[str, DecoderForm]] = []
    for table in catalogue.tables_of("tokens"):
        if table.decoders:
            named += read_forms(catalogue.table_path(table, table.decoders))
    for model in catalogue.models.values():
        form = form_of(model.decoder) if model.decoder else None
        if form is not None:
            named += [(model.id, form), (model.name, form)]
    # The first table that describes a model counts.
    return {plain_name(name): form for name, form in reversed(named)}


def read_forms(path: Path) -> tuple[tuple[str, DecoderForm], ...]:
    """Read dimensions by model name and by alias; raises SpecError for an invalid table."""
    rows = read_table(path, _FORM_COLUMNS, lambda _, row: (row, _form(row)))
    return tuple(
        (name.strip(), form)
        for row, form in rows
        for name in (row["model"], *filter(None, row.get("aliases", "").split(";")))
    )


def _form(row: Mapping[str, str]) -> DecoderForm:
    counts = {name: whole_number(name, row[name]) for name in (*_COUNTS, *_HEADS)}
    counts |= {name: count_or(name, row.get(name, ""), 0) for name in _OPTIONAL}
    for part, whole in _PARTS.items():
        if counts[part] > counts[whole]:
            raise ValueError(f"{part}: expected at most the {whole}, got {row[part]!r}")
    return DecoderForm(
        **{name: counts[name] for name in (*_COUNTS, "experts", "experts_per_token")},
        attention=counts["heads"] * counts["head_size"],
        cached_numbers_per_token=int(positive_number(_CACHE, row[_CACHE])) // _BYTES_OF_16_BITS,
        window=counts["sliding_window"],
        windowed=counts["windowed_layers"] / counts["layers"],
    )
