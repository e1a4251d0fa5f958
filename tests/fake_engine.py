"""A fake onnxruntime-genai without a model, because tests cannot install the real one.

Like the real engine, it answers at most four requests together and finishes them before the next
four. It accepts calls from one thread only, and a request may fail.
"""

from __future__ import annotations

import enum
import threading
import time
from types import ModuleType, SimpleNamespace
from typing import Any

TOGETHER = 4


class Flags(enum.IntFlag):
    """The kinds of an engine's event."""

    NONE = 0
    TOKEN = 1
    TURN_FINISHED = 2
    FAILED = 4


class _Request:
    def __init__(self, engine: _Engine) -> None:
        self._engine, self.left, self.turn = engine, 0, False

    def begin_turn(self, tokens: Any, options: _Options) -> None:
        assert len(tokens), "a prompt has tokens"
        self.left = options.least
        self._engine.waiting.append(self)

    def close(self) -> None:
        assert self.left == 0, "only finished requests are closed"


class _Options:
    def __init__(self, _: _Request) -> None:
        self.least = self.most = 0

    def set_min_generated_tokens(self, count: int) -> None:
        self.least = count

    def set_max_generated_tokens(self, count: int) -> None:
        self.most = count

    def set_do_sample(self, sample: bool) -> None:
        assert not sample


class _Engine:
    step_seconds, fails_after = 0.005, 10**9

    def __init__(self, _: Any) -> None:
        self.owner = threading.get_ident()
        self.waiting: list[_Request] = []
        self.batch: list[_Request] = []
        self.steps = 0

    def create_request(self, *, options: Any) -> _Request:
        self._require_owner()
        assert options.room > 0
        return _Request(self)

    def create_event_buffer(self, capacity: int) -> int:
        return capacity

    def run(self, _: int) -> list[Any]:
        self._require_owner()
        time.sleep(self.step_seconds)
        self.steps += 1
        if not self.batch:
            self.batch, self.waiting = self.waiting[:TOGETHER], self.waiting[TOGETHER:]
        events = [self._event(request) for request in self.batch]
        self.batch = [request for request in self.batch if request.left]
        return events

    def _event(self, request: _Request) -> Any:
        if self.steps >= self.fails_after:
            code = SimpleNamespace(name="OUT_OF_MEMORY")
            return SimpleNamespace(request=request, flags=Flags.FAILED, error_code=code)
        request.left -= 1
        flags = Flags.TOKEN if request.left else Flags.TOKEN | Flags.TURN_FINISHED
        return SimpleNamespace(request=request, flags=flags, token=7)

    def _require_owner(self) -> None:
        if threading.get_ident() != self.owner:
            raise RuntimeError("Engine operations must be called from the Engine owner thread.")


class _RequestOptions:
    def __init__(self) -> None:
        self.room = 0

    def set_max_session_tokens(self, count: int) -> None:
        self.room = count


def fake_genai(*, step_seconds: float = 0.005, fails_after: int = 10**9) -> ModuleType:
    """The fake module; from step ``fails_after`` on, every request fails."""
    module = ModuleType("onnxruntime_genai")
    behaviour = {"step_seconds": step_seconds, "fails_after": fails_after}
    module.Engine = type("Engine", (_Engine,), behaviour)  # type: ignore[attr-defined]
    module.Model = str  # type: ignore[attr-defined]
    module.EngineEventFlags = Flags  # type: ignore[attr-defined]
    module.RequestOptions = _RequestOptions  # type: ignore[attr-defined]
    module.TurnOptions = _Options  # type: ignore[attr-defined]
    return module
