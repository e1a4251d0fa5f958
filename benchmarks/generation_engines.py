"""Engines that answer prompts with one decoder: epochcost's and those of three other programs.

Each engine is a process: ``python -m generation_engines ENGINE CASE FOLDER``. The process writes
its logits after the prompt and after one more token to FOLDER/ENGINE.npy and prints a line when it
is ready. Each line on standard input requests one answer, whose seconds the process prints as JSON.
Every engine selects the most likely token within the timed part.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf_weights
import numpy as np
import onnx
from made_trials import made_trial
from numpy.typing import NDArray
from transformers_modules import network, renamed

from epochcost.graphs.weight_bits import draw_codes, in_few_bits
from epochcost.plan.trial import SessionSettings, Trial
from epochcost.plan.work import Phase
from epochcost.specs.decoder import MASK, TOKENS, Decoder
from epochcost.specs.loader import load_catalogue
from epochcost.specs.model import Model
from epochcost.specs.study import Precision
from onnxstep.graphs.loading import load_model
from onnxstep.graphs.parameters import materialise

Array = NDArray[Any]
_SEED = 20261123
_GENAI_CONFIGURATION = "genai_config.json"


@dataclass(frozen=True)
class Case:
    """A decoder, its prompts, and the number of generated tokens."""

    model: str
    precision: Precision
    batch: int
    prompt: int
    tokens: int
    threads: int

    @property
    def spec(self) -> Model:
        """The model's spec."""
        return load_catalogue(Path()).model(self.model)

    @property
    def decoder(self) -> Decoder:
        """The sizes of the decoder; exits if the model is not a decoder."""
        return self.spec.decoder or sys.exit(f"{self.model}: expected a decoder")

    @property
    def graph(self) -> Path:
        """The path of the model's weightless ONNX file."""
        return Path("models", str(self.spec.graph))

    @property
    def middle(self) -> int:
        """Tokens in the cache when half of the answer is generated."""
        return self.prompt + self.tokens // 2

    def prompts(self) -> Array:
        """Token indices [batch, prompt] without 0, which is genai's padding."""
        drawn = np.random.default_rng(_SEED)
        return drawn.integers(1, self.decoder.vocabulary, (self.batch, self.prompt), np.int64)


class Ours:
    """The steps that `epochcost run` times.

    A step has a fixed context length. The timed decode step has the context of the middle of an
    answer, which is the average of the growing context in the other engines. A separate decode step
    follows the prompt, to compare the logits.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        self._case, self._folder, self._weights = case, folder, dict[str, Array]()
        self._next = self._prompts = case.prompts()
        self._prefill = self._stepper(Phase(name="prefill", tokens=case.prompt))
        self.prefill()
        self._decode = self._stepper(Phase(name="decode", tokens=case.middle))

    def scores(self) -> Array:
        """Logits [2, batch, vocabulary] after the prompt and after one more token."""
        self.fresh()
        self.prefill()
        step = self._stepper(Phase(name="decode", tokens=self._case.prompt))
        step()
        return np.stack([stepper.output("logits")[:, -1] for stepper in (self._prefill, step)])

    def fresh(self) -> None:
        """Forget the tokens of earlier sequences."""
        self._next = self._prompts

    def prefill(self) -> None:
        """Read the prompts."""
        self._take(self._prefill)

    def decode(self) -> None:
        """Add a token to each sequence."""
        self._take(self._decode)

    def _take(self, step: Any) -> None:
        step()
        self._next = step.output("logits")[:, -1].argmax(axis=1)[:, None]

    def _stepper(self, phase: Phase) -> Any:
        """The step of a phase, in which a decode's cache has the prompt's values and then zeros."""
        from epochcost.execute.build import build_job
        from epochcost.measure import stepping
        from epochcost.measure.session import open_session

        case = self._case
        job = build_job(_trial(case, phase), case.spec, case.graph, self._folder)
        self._weights = self._weights or stepping.initial_parameters(job)
        fixed = stepping.constant_weights(job, self._weights)
        session = open_session(job.graph, "cpu", job.session, weights=fixed)
        inputs = stepping.graph_inputs(job, self._weights, session.get_inputs())
        cache = {} if phase.name == "prefill" else self._prefill.carried_values()
        past = {name: _longer(values, phase.length) for name, values in cache.items()}
        inputs = stepping.StepInputs(inputs.batches, {**inputs.constants, **past})
        step = stepping.Stepper(session, "cpu", job.mode, inputs, job.carried, job.session)
        step.feed_from(self._feeds(np.ones((case.batch, phase.length), np.int64)))
        return step

    def _feeds(self, mask: Array) -> Iterator[dict[str, Array]]:
        while True:
            yield {TOKENS: self._next, MASK: mask}


def _longer(values: Array, length: int) -> Array:
    """Keys or values [batch, heads, tokens, numbers], padded with zeros to ``length`` tokens."""
    return np.pad(values, ((0, 0), (0, 0), (0, length - values.shape[2]), (0, 0)))


def _trial(case: Case, phase: Phase) -> Trial:
    from epochcost.measure.runtime import runtime_name

    return made_trial(
        case.model,
        case.batch,
        runtime_name(),
        case.graph,
        mode="inference",
        precision=case.precision,
        work=phase,
        session=SessionSettings(threads=case.threads),
        seed=_SEED,
    )


class Genai:
    """onnxruntime-genai's Generator, which uses the logits of the last position unchanged.

    Each answer has a new Generator, since a Generator of several sequences cannot be rewound. The
    Generator's cache is as long as prompt and answer.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        import onnxruntime_genai

        _write_for_genai(case, folder.parent / "genai")
        self._library, self._batch = onnxruntime_genai, case.batch
        self._model = onnxruntime_genai.Model(str(folder.parent / "genai"))
        self._prompts = case.prompts().astype(np.int32)
        self._length = case.prompt + case.tokens + 1
        self._generator: Any = None

    def scores(self) -> Array:
        """Logits [2, batch, vocabulary] after the prompt and after one more token."""
        self.fresh()
        self._generator.append_tokens(self._prompts)
        first = self._generator.get_logits()[:, -1].copy()
        self._generator.generate_next_token()
        return np.stack([first, self._generator.get_logits()[:, -1]])

    def fresh(self) -> None:
        """Make a new Generator, whose minimum length excludes the end token."""
        options, length = self._library.GeneratorParams(self._model), self._length
        sizes = {"max_length": length, "min_length": length, "batch_size": self._batch}
        options.set_search_options(**sizes, do_sample=False)
        self._generator = None
        self._generator = self._library.Generator(self._model, options)

    def prefill(self) -> None:
        """Read the prompts."""
        self._generator.append_tokens(self._prompts)
        self._generator.generate_next_token()

    def decode(self) -> None:
        """Add a token to each sequence."""
        self._generator.generate_next_token()


def _write_for_genai(case: Case, folder: Path) -> None:
    """Write the timed graph for any batch and length, with weights as external data."""
    if (folder / _GENAI_CONFIGURATION).exists():
        return
    folder.mkdir()
    model = load_model(case.graph)
    if case.precision == "int4":
        model = in_few_bits(model, integer_activations=True)
    values = {**materialise(model, _SEED), **draw_codes(model, _SEED)}
    for value in [value for value in model.graph.input if value.name in values]:
        model.graph.input.remove(value)
        stored = onnx.numpy_helper.from_array(values.pop(value.name), value.name)
        model.graph.initializer.append(stored)
    onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="model.data")
    (folder / _GENAI_CONFIGURATION).write_text(json.dumps(_genai_configuration(case)), "utf-8")


def _genai_configuration(case: Case) -> dict[str, Any]:
    form, parts = case.decoder, ("key", "value")
    decoder = {
        "filename": "model.onnx",
        "session_options": {"intra_op_num_threads": case.threads, "provider_options": []},
        "head_size": form.head_size,
        "hidden_size": form.heads * form.head_size,
        "num_attention_heads": form.heads,
        "num_key_value_heads": form.key_value_heads,
        "num_hidden_layers": form.layers,
        "inputs": {name: name for name in (TOKENS, MASK)}
        | {f"past_{part}_names": f"past_key_values.%d.{part}" for part in parts},
        "outputs": {"logits": "logits"}
        | {f"present_{part}_names": f"present.%d.{part}" for part in parts},
    }
    ends = {f"{name}_token_id": 0 for name in ("bos", "eos", "pad")}
    sizes = {"vocab_size": form.vocabulary, "context_length": form.context}
    return {
        "model": {"type": "llama", **ends, **sizes, "decoder": decoder},
        "search": {"max_length": form.context, "past_present_share_buffer": True},
    }


class Transformers:
    """transformers' module in PyTorch's eager mode with epochcost's weights and a static cache.

    Attention is PyTorch's ``scaled_dot_product_attention``, the default of transformers, and the
    head reads the last position only. The loop over tokens is here, since ``generate`` does
    additional work.
    """

    def __init__(self, case: Case, folder: Path) -> None:  # noqa: ARG002 - as every engine's
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch
        import transformers

        torch.set_num_threads(case.threads)
        self._inference = torch.inference_mode
        sys.path.insert(0, "models")
        # Specs do not contain the shape's theta and epsilon.
        shape = importlib.import_module("export_decoders").SHAPES[case.graph.stem]
        self._network = network(transformers, shape).eval()
        drawn = materialise(load_model(case.graph), _SEED).items()
        tensors = renamed(shape, {name: torch.from_numpy(value) for name, value in drawn})
        self._network.load_state_dict(dict(tensors))
        self._cache = transformers.StaticCache(
            self._network.config, max_cache_len=case.prompt + case.tokens
        )
        self._next = self._prompts = torch.from_numpy(case.prompts())
        self._logits: Any = None

    def scores(self) -> Array:
        """Logits [2, batch, vocabulary] after the prompt and after one more token."""
        self.fresh()
        self.prefill()
        first = self._logits.numpy().copy()
        self.decode()
        return np.stack([first, self._logits.numpy()])

    def fresh(self) -> None:
        """Empty the cache."""
        with self._inference():
            self._cache.reset()

    def prefill(self) -> None:
        """Read the prompts."""
        self._take(self._prompts)

    def decode(self) -> None:
        """Add a token to each sequence."""
        self._take(self._next)

    def _take(self, tokens: Any) -> None:
        with self._inference():
            answer = self._network(tokens, past_key_values=self._cache, logits_to_keep=1)
            self._logits = answer.logits[:, -1]
            self._next = self._logits.argmax(dim=-1, keepdim=True)


class LlamaCpp:
    """llama.cpp with epochcost's weights in fp32 and a cache in fp32, for Llama and Qwen2 shapes.

    A batch of llama.cpp has the tokens of all sequences, and logits of the last token of each.
    """

    def __init__(self, case: Case, folder: Path) -> None:
        import llama_cpp

        if not (path := folder.parent / "weights.gguf").exists():
            gguf_weights.write(case.graph, _SEED, path)
        self._library, self._vocabulary = llama_cpp, case.decoder.vocabulary
        length, tokens = case.prompt + case.tokens + 1, case.batch * case.prompt
        options = llama_cpp.llama_context_default_params()
        options.n_ctx, options.n_seq_max = case.batch * length, case.batch
        options.n_batch, options.n_ubatch = tokens, min(tokens, 512)
        options.n_threads = options.n_threads_batch = case.threads
        options.type_k = options.type_v = llama_cpp.GGML_TYPE_F32
        options.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        self._model = llama_cpp.llama_model_load_from_file(
            str(path).encode(), llama_cpp.llama_model_default_params()
        )
        self._context = llama_cpp.llama_init_from_model(self._model, options)
        self._batch = llama_cpp.llama_batch_init(tokens, 0, 1)
        self._prompts, self._logits = case.prompts(), np.empty(0)
        self.fresh()

    def scores(self) -> Array:
        """Logits [2, batch, vocabulary] after the prompt and after one more token."""
        self.fresh()
        self.prefill()
        first = self._logits
        self.decode()
        return np.stack([first, self._logits])

    def fresh(self) -> None:
        """Empty the cache."""
        library = self._library
        library.llama_memory_clear(library.llama_get_memory(self._context), False)
        self._next, self._read = self._prompts, 0

    def prefill(self) -> None:
        """Read the prompts."""
        self.decode()

    def decode(self) -> None:
        """Read the next tokens of each sequence, at first its prompt."""
        batch, (sequences, length) = self._batch, self._next.shape
        batch.n_tokens = sequences * length
        for at, (sequence, place) in enumerate(np.ndindex(sequences, length)):
            batch.token[at] = int(self._next[sequence, place])
            batch.pos[at] = self._read + place
            batch.n_seq_id[at], batch.seq_id[at][0] = 1, sequence
            batch.logits[at] = place == length - 1
        if self._library.llama_decode(self._context, batch):
            sys.exit("llama.cpp: the batch was refused")
        lasts = range(length - 1, sequences * length, length)
        rows = (self._library.llama_get_logits_ith(self._context, last) for last in lasts)
        self._logits = np.stack([np.ctypeslib.as_array(row, (self._vocabulary,)) for row in rows])
        self._next, self._read = self._logits.argmax(axis=1)[:, None], self._read + length


ENGINES = {"ours": Ours, "genai": Genai, "transformers": Transformers, "llama.cpp": LlamaCpp}


def main(name: str, case_text: str, folder: Path) -> None:
    """Load an engine, say that it is ready, and answer requests until standard input ends."""
    # Prints of libraries go to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    case = Case(**json.loads(case_text))
    engine = ENGINES[name](case, folder)
    np.save(folder / f"{name}.npy", engine.scores())
    print(json.dumps("ready"), file=out, flush=True)
    for _ in sys.stdin:
        engine.fresh()
        prefill = _seconds(engine.prefill)
        decodes = [_seconds(engine.decode) for _ in range(case.tokens)]
        seconds = {"prefill": prefill, "decode": float(np.median(decodes))}
        print(json.dumps(seconds), file=out, flush=True)


def _seconds(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("case", help="a `Case` as JSON")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    main(arguments.engine, arguments.case, arguments.folder)
