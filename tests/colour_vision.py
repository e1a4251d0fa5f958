"""How colours look to people with another colour vision, and how different two colours look.

The simulation is that of Machado, Oliveira and Fernandes, "A physiologically-based model for
simulation of color vision deficiency" (IEEE TVCG 15(6), 2009), at severity 1.0: its matrices apply
to linear RGB. Differences are CIEDE2000 (CIE 142-2001) under D65, as Sharma, Wu and Dalal spell it
out (2005), without corrections for other viewing conditions.
"""

from __future__ import annotations

import math

Triple = tuple[float, float, float]
Matrix = tuple[Triple, Triple, Triple]

NORMAL: Matrix = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
VISIONS: dict[str, Matrix] = {
    "normal": NORMAL,
    "protan": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deutan": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritan": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# sRGB to CIE XYZ (IEC 61966-2-1), and the white of D65.
_XYZ: Matrix = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE: Triple = (0.95047, 1.0, 1.08883)


def seen(colour: str, vision: Matrix) -> Triple:
    """The CIE Lab coordinates of a "#rrggbb" colour as a colour vision sees it."""
    linear = _applied(vision, _linear(colour))
    clipped = tuple(min(max(value, 0.0), 1.0) for value in linear)
    return _lab(_applied(_XYZ, clipped))


def _linear(colour: str) -> Triple:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels
    )
    return red, green, blue


def _applied(matrix: Matrix, vector: tuple[float, ...]) -> Triple:
    first, second, third = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return first, second, third


def _lab(xyz: Triple) -> Triple:
    x, y, z = (_root(value / white) for value, white in zip(xyz, _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _root(value: float) -> float:
    return value ** (1 / 3) if value > (6 / 29) ** 3 else value / (3 * (6 / 29) ** 2) + 4 / 29


def difference(one: Triple, other: Triple) -> float:
    """The difference CIEDE2000 of two CIE Lab colours; about 1 is just visible side by side."""
    mean_chroma = (math.hypot(*one[1:]) + math.hypot(*other[1:])) / 2
    stretch = 1 + 0.5 * (1 - math.sqrt(mean_chroma**7 / (mean_chroma**7 + 25**7)))
    (chroma, hue), (chroma_2, hue_2) = (_polar(lab[1] * stretch, lab[2]) for lab in (one, other))
    turn, mean_hue = _hues(hue, hue_2, chroma * chroma_2)
    by_hue = 2 * math.sqrt(chroma * chroma_2) * math.sin(math.radians(turn / 2))
    middle = (chroma + chroma_2) / 2
    light = (one[0] + other[0]) / 2 - 50
    parts = (
        (other[0] - one[0]) / (1 + 0.015 * light**2 / math.sqrt(20 + light**2)),
        (chroma_2 - chroma) / (1 + 0.045 * middle),
        by_hue / (1 + 0.015 * middle * _hue_weight(mean_hue)),
    )
    total = sum(part**2 for part in parts) + _rotation(middle, mean_hue) * parts[1] * parts[2]
    return math.sqrt(max(total, 0.0))


def _polar(a: float, b: float) -> tuple[float, float]:
    return math.hypot(a, b), math.degrees(math.atan2(b, a)) % 360


def _hues(one: float, other: float, chromas: float) -> tuple[float, float]:
    """The signed angle from one hue to the other, and the hue between them, in degrees."""
    if chromas == 0:
        return 0.0, one + other
    turn = (other - one + 180) % 360 - 180
    return turn, (one + turn / 2) % 360


def _hue_weight(hue: float) -> float:
    terms = ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    return 1 + sum(size * math.cos(math.radians(n * hue + at)) for size, n, at in terms)


def _rotation(chroma: float, hue: float) -> float:
    angle = 60 * math.exp(-(((hue - 275) / 25) ** 2))
    return -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7)) * math.sin(math.radians(angle))
