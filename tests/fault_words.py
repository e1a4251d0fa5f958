"""What may not stand in a fault's words: those of the library that judged."""

from __future__ import annotations

import re

PYDANTIC = re.compile(r"Input|\bvalid\b|instance|dictionary|pydantic|Decimal")
QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'""")


def is_ours(message: str) -> bool:
    """Whether a message, what it quotes aside, is in words of ours."""
    return not PYDANTIC.search(QUOTED.sub("", message))
