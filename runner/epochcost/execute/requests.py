"""Write the files of a trial with requests to a decoder: prompts, and a graph for any length."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import onnx
from numpy.typing import NDArray

from epochcost.errors import ModelError
from epochcost.execute.job_files import graph_in_precision, save_arrays, save_graph
from epochcost.measure.job import AskedDecoder, JobFiles
from epochcost.plan.trial import Trial
from epochcost.plan.work import Requests
from epochcost.specs.decoder import SCORES, TOKENS
from epochcost.specs.model import Model
from epochcost.specs.requests import Lengths
from onnxstep.graphs.nodes import copied, is_standard

# Number of different prompts: enough to avoid patterns, and small compared with any model.
PROMPTS = 512
_Z90 = NormalDist().inv_cdf(0.9)


def request_files(
    trial: Trial, requests: Requests, model: Model, graph: onnx.ModelProto, folder: Path
) -> JobFiles:
    """Write the graph in the trial's precision and the prompts (see ``draw_requests``)."""
    if model.decoder is None:
        raise ModelError(f"model {model.id}: expected a decoder, got a spec without [decoder]")
    # The engine batches prompts of different lengths and reads scores at the end of each prompt.
    whole = with_all_positions(graph)
    plain = save_graph(whole, folder / "decoder.onnx")
    prompts = save_arrays(
        draw_requests(requests, model.decoder.vocabulary, trial.seed), folder / "prompts.npz"
    )
    return JobFiles(
        graph=graph_in_precision(trial, whole, plain),
        batches=prompts,
        serving=AskedDecoder(form=model.decoder, requests=requests),
    )


def draw_requests(requests: Requests, vocabulary: int, seed: int) -> dict[str, NDArray[np.int32]]:
    """Draw uniform random tokens, and lengths from the study; equal seeds give equal arrays.

    The arrays are ``prompts`` [PROMPTS, longest prompt], of which a request uses the first
    ``prompt_tokens`` [PROMPTS] tokens, and ``answer_tokens`` [PROMPTS].
    """
    draw = np.random.default_rng(seed)
    prompt_tokens, answer_tokens = (
        draw_lengths(lengths, draw) for lengths in (requests.prompt, requests.answer)
    )
    return {
        # The time of a language model does not depend on the meaning of tokens.
        "prompts": draw.integers(0, vocabulary, (PROMPTS, requests.prompt.longest), np.int32),
        "prompt_tokens": prompt_tokens,
        "answer_tokens": np.maximum(answer_tokens, 2),
    }


def draw_lengths(lengths: Lengths, draw: np.random.Generator) -> NDArray[np.int32]:
    """Draw ``PROMPTS`` random lengths, in tokens, from a distribution."""
    if lengths.curve is None:
        tokens = np.array(lengths.tokens, np.int32)
        weights = np.array(lengths.counts or np.ones(len(tokens)), np.float64)
        return draw.choice(tokens, PROMPTS, p=weights / weights.sum())
    median, p90, longest = lengths.curve
    spread = math.log(p90 / median) / _Z90
    drawn = np.rint(median * np.exp(spread * draw.standard_normal(PROMPTS)))
    return np.asarray(np.clip(drawn, 1, longest), np.int32)


_SEQUENCE = 1


def with_all_positions(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a decoder with scores [batch, positions, …] for all tokens instead of the last.

    The Slice node that selects the last position is removed, if there is one.
    """
    whole = copied(model)
    graph = whole.graph
    fed = next(value for value in graph.input if value.name == TOKENS)
    output = next(value for value in graph.output if value.name == SCORES)
    length = fed.type.tensor_type.shape.dim[_SEQUENCE]
    if output.type.tensor_type.shape.dim[_SEQUENCE] == length:
        return model
    by_output = {name: node for node in graph.node for name in node.output}
    product = by_output[SCORES]
    slicing = by_output.get(product.input[0])
    if slicing is None or not is_standard(slicing, "Slice"):
        return model
    product.input[0] = slicing.input[0]
    graph.node.remove(slicing)
    output.type.tensor_type.shape.dim[_SEQUENCE].CopyFrom(length)
    return whole
