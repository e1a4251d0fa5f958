"""Serve requests with onnxruntime-genai's engine; only this module imports onnxruntime-genai.

The thread that opened the engine adds requests between two steps. The engine forms the batches.
"""

from __future__ import annotations

import importlib
import json
import queue
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from epochcost.errors import CapabilityError
from epochcost.measure.job import AskedDecoder, Job, TrialFailed
from epochcost.measure.loadgen import Answers, Issue, LoadGenLog, Sample, first_tokens
from epochcost.measure.stepping import Array, initial_parameters, load_arrays
from epochcost.results.records import EXECUTION_PROVIDERS, Placement
from epochcost.specs.decoder import MASK, SCORES, TOKENS, Decoder
from epochcost.specs.requests import ENGINE
from onnxstep.graphs.loading import load_model

_GRAPH, _WEIGHTS, _CONFIGURATION = "model.onnx", "model.onnx.data", "genai_config.json"
# Weights at multiples of a page are mapped into memory by the runtime instead of copied.
_ALIGNED_BYTES = 4096
_EVENTS = 256
_ERRORS_ONLY = 3


@dataclass
class _OpenRequest:
    sample: Sample | None
    answer_token_count: int = 0


class DecoderEngine:
    """An engine that answers requests, each of which names its prompt by a number.

    ``prompt_tokens`` and ``answer_tokens`` are lengths in tokens, by prompt. ``start_seconds`` is
    the time to load the model. Raises CapabilityError if the engine's package is missing, or if the
    runtime could use a GPU, because the engine does not report where nodes run.
    """

    def __init__(self, job: Job, decoder: AskedDecoder, folder: Path) -> None:
        arrays = load_arrays(job.batches)
        self.prompt_tokens = arrays["prompt_tokens"].tolist()
        self.answer_tokens = arrays["answer_tokens"].tolist()
        self._prompts = [
            row[:length].astype(np.int32)
            for row, length in zip(arrays["prompts"], self.prompt_tokens, strict=True)
        ]
        self.placement = _write_graph_and_weights(job, folder)
        settings = _engine_configuration(job, decoder.form, decoder.requests.length)
        (folder / _CONFIGURATION).write_text(json.dumps(settings), encoding="utf-8")
        self._genai = _genai()
        begun = time.perf_counter()
        self._model = self._genai.Model(str(folder))
        self._engine = self._genai.Engine(self._model)
        self.start_seconds = time.perf_counter() - begun
        self._buffer = self._engine.create_event_buffer(_EVENTS)
        self._turns: dict[Any, _OpenRequest] = {}

    def begin(self, number: int, sample: Sample | None = None) -> None:
        """Ask the engine to answer prompt ``number``; ``sample`` is None without LoadGen."""
        prompt, answer = self._prompts[number], self.answer_tokens[number]
        # The engine allocates a cache for the longest session of a batch.
        room = self._genai.RequestOptions()
        room.set_max_session_tokens(len(prompt) + answer)
        request = self._engine.create_request(options=room)
        options = self._genai.TurnOptions(request)
        options.set_min_generated_tokens(answer)
        options.set_max_generated_tokens(answer)
        options.set_do_sample(False)
        request.begin_turn(prompt, options)
        self._turns[request] = _OpenRequest(sample)

    def step(self) -> tuple[list[_OpenRequest], list[_OpenRequest]]:
        """Run a step; returns requests that got their first token, and finished requests.

        Raises TrialFailed if a request fails in the engine.
        """
        first, ended = [], []
        flags = self._genai.EngineEventFlags
        for event in self._engine.run(self._buffer):
            turn = self._turns[event.request]
            if event.flags & flags.FAILED:
                raise TrialFailed(f"{ENGINE}: a request failed: {event.error_code.name}")
            if event.flags & flags.TOKEN:
                turn.answer_token_count += 1
                if turn.answer_token_count == 1:
                    first.append(turn)
            if event.flags & flags.TURN_FINISHED:
                ended.append(self._turns.pop(event.request))
                event.request.close()
        return first, ended

    def answer(self, numbers: Sequence[int]) -> float:
        """Answer the prompts ``numbers`` together, without LoadGen; returns the time in seconds."""
        begun = time.perf_counter()
        for number in numbers:
            self.begin(number)
        while self._turns:
            self.step()
        return time.perf_counter() - begun


def answer_while(
    engine: DecoderEngine, asking: Callable[[Issue], LoadGenLog], answers: Answers
) -> LoadGenLog:
    """Run ``asking``, which sends requests, on another thread; answer them on this thread.

    Only the thread that opened the engine may call this. Raises the engine's errors.
    """
    arrived: queue.SimpleQueue[Sample | None] = queue.SimpleQueue()

    def issue(samples: Sequence[Sample]) -> None:
        for sample in samples:
            arrived.put(sample)

    with ThreadPoolExecutor(1, "loadgen") as pool:
        asker = pool.submit(asking, issue)
        asker.add_done_callback(lambda _: arrived.put(None))
        _answer_arriving_requests(engine, arrived, answers)
    answers.raise_fault()
    return asker.result()


def _answer_arriving_requests(
    engine: DecoderEngine, arrived: queue.SimpleQueue[Sample | None], answers: Answers
) -> None:
    """Answer the requests in ``arrived`` until it gives None and no request is left."""
    waiting: dict[int, Sample] = {}
    closed = False
    while waiting or not closed:
        try:
            sample = arrived.get(block=not waiting)
        except queue.Empty:
            answers.attempt(lambda: _step(engine, answers, waiting))
        else:
            if sample is None:
                closed = True
            else:
                waiting[sample.id] = sample
                answers.attempt(partial(engine.begin, sample.index, sample))
        if answers.fault is not None and waiting:
            answers.complete([*waiting.values()])
            waiting.clear()


def _step(engine: DecoderEngine, answers: Answers, waiting: dict[int, Sample]) -> None:
    first, ended = engine.step()
    first_tokens([turn.sample for turn in first if turn.sample is not None])
    for turn in ended:
        if turn.sample is not None:
            answers.complete([turn.sample], tokens=turn.answer_token_count)
            del waiting[turn.sample.id]


def _genai() -> Any:
    try:
        return importlib.import_module(ENGINE.replace("-", "_"))
    except ImportError as error:
        raise CapabilityError(
            f"{ENGINE}: expected the engine in the environment of this worker, got {error}: "
            f"install it by `epochcost engine {ENGINE}==…`"
        ) from None


def _write_graph_and_weights(job: Job, folder: Path) -> Placement:
    model = load_model(job.graph)
    values = initial_parameters(job)
    inputs = [value for value in model.graph.input if value.name in values]
    with (folder / _WEIGHTS).open("wb") as file:
        for value in inputs:
            model.graph.input.remove(value)
            # Popped, so that a weight's memory is released after the weight is written.
            model.graph.initializer.append(_stored(value, values.pop(value.name), file))
    (folder / _GRAPH).write_bytes(model.SerializeToString())
    return _cpu_placement(model)


def _stored(value: onnx.ValueInfoProto, array: Array, file: Any) -> onnx.TensorProto:
    begin = -(-file.tell() // _ALIGNED_BYTES) * _ALIGNED_BYTES
    file.seek(begin)
    file.write(np.ascontiguousarray(array).data)
    tensor = onnx.TensorProto(
        name=value.name,
        data_type=value.type.tensor_type.elem_type,
        dims=array.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    for key, entry in (("location", _WEIGHTS), ("offset", begin), ("length", array.nbytes)):
        tensor.external_data.add(key=key, value=str(entry))
    return tensor


def _cpu_placement(model: onnx.ModelProto) -> Placement:
    # The engine reports no placement, so its runtime may not have another device.
    provider = EXECUTION_PROVIDERS["cpu"]
    foreign = {*ort.get_available_providers()} & {*EXECUTION_PROVIDERS.values()} - {provider}
    if foreign:
        raise CapabilityError(
            f"{ENGINE}: expected a runtime with the CPU alone, got {min(foreign)} too"
        )
    counts = Counter(node.op_type for node in model.graph.node)
    return Placement(provider=provider, nodes_by_provider={provider: dict(sorted(counts.items()))})


def _engine_configuration(job: Job, decoder: Decoder, context_length: int) -> dict[str, Any]:
    """The engine's configuration file, without answer lengths, which each request states."""
    session: dict[str, Any] = {"log_severity_level": _ERRORS_ONLY}
    if job.session.threads:
        session["intra_op_num_threads"] = job.session.threads
    part = {
        "filename": _GRAPH,
        "session_options": session,
        "head_size": decoder.head_size,
        "hidden_size": decoder.heads * decoder.head_size,
        "num_attention_heads": decoder.heads,
        "num_key_value_heads": decoder.key_value_heads,
        "num_hidden_layers": decoder.layers,
        "inputs": {"input_ids": TOKENS, "attention_mask": MASK} | _cache("past", "past_key_values"),
        "outputs": {"logits": SCORES} | _cache("present", "present"),
    }
    model = {
        "type": "llama",
        "vocab_size": decoder.vocabulary,
        "context_length": context_length,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "decoder": part,
    }
    search = {"max_length": context_length, "past_present_share_buffer": True}
    return {"model": model, "search": search}


def _cache(role: str, prefix: str) -> dict[str, str]:
    return {f"{role}_{part}_names": f"{prefix}.%d.{part}" for part in ("key", "value")}
