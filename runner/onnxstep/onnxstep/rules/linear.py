"""Gradients of matrix products and of Einsum."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onnxstep.axes import materialized_transpose, transposed
from onnxstep.builder import Builder, Value, ascending
from onnxstep.errors import ModelError
from onnxstep.registry import Cotangents, Node, gradient

# MLAS, ONNX Runtime's library for the CPU, splits a float32 matrix product into panels of this many
# columns and positions.
_PANEL = 128
# From this ratio of rows to columns on, a panel of the result does not fit into the cache.
_TALL = 4


@gradient("Gemm", versions=(7, 9, 11, 13))
def gemm(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(α A' B' + β C) = α dA' B' + α A' dB' + β dC; A' is A or Aᵀ, B' is B or Bᵀ."""
    a, b = node.input(0), node.input(1)
    alpha, beta = node.attribute("alpha"), node.attribute("beta")
    ta, tb = node.attribute("transA"), node.attribute("transB")
    da = (
        op.Gemm(b, dy, alpha=alpha, transA=tb, transB=1)
        if ta
        else op.Gemm(dy, b, alpha=alpha, transB=int(not tb))
    )
    if alpha == 1 and not ta:
        db = summed_over_rows(dy, a) if tb else summed_over_rows(a, dy)
    elif tb:
        db = op.Gemm(dy, a, alpha=alpha, transA=1, transB=ta)
    else:
        db = op.Gemm(a, dy, alpha=alpha, transA=int(not ta))
    return da, db, dy if beta == 1 else dy * beta


@gradient("MatMul", versions=(1, 9, 13))
def matmul(op: Builder, node: Node, dy: Value) -> Cotangents:
    """Gradient from d(A B) = dA B + A dB; a vector counts as a matrix with one row or column.

    A matrix's gradient may keep batch axes that only the other operand has; the caller sums them.
    """
    a, b = node.input(0), node.input(1)
    rows = op.Unsqueeze(a, op.integers(0)) if a.rank == 1 else a
    columns = op.Unsqueeze(b, op.integers(1)) if b.rank == 1 else b
    if a.rank == 1:
        dy = op.Unsqueeze(dy, op.integers(-1 if b.rank == 1 else -2))
    if b.rank == 1:
        dy = op.Unsqueeze(dy, op.integers(-1))
    da = _reduce_if_vector(op.MatMul(dy, transposed(columns)), a)
    db = _right_operand_cotangent(op, rows, columns, dy)
    return da, _reduce_if_vector(db, b)


def summed_over_rows(a: Value, b: Value) -> Value:
    """Aᵀ B [M, N] for a [K, M] and b [K, N]: the gradient of a weight, summed over K positions."""
    op, positions, (rows, columns) = a.op, a.shape[0], (a.shape[1], b.shape[1])
    if op.provider != "cpu" or min(rows, columns) <= _PANEL or positions < _PANEL:
        return op.Gemm(a, b, transA=1)
    # For every block of positions, the kernel passes over the whole result. This is slower for a
    # tall result (benchmarks/rules/weight_products.py).
    if rows >= _TALL * columns and positions >= 2 * _PANEL:
        return materialized_transpose(op.Gemm(materialized_transpose(b), a))
    # Gemm would transpose its left operand again for every block of columns.
    return op.Gemm(materialized_transpose(a), b)


def _right_operand_cotangent(op: Builder, a: Value, b: Value, dy: Value) -> Value:
    """Aᵀ dY, summed over the batch if only ``a`` has batch axes."""
    if b.rank == 2 and a.rank > 2:
        flat_a = a.reshape(-1, a.shape[-1])
        flat_dy = dy.reshape(-1, dy.shape[-1])
        return summed_over_rows(flat_a, flat_dy)
    return op.MatMul(transposed(a), dy)


def _reduce_if_vector(cotangent: Value, operand: Value) -> Value:
    if operand.rank != 1:
        return cotangent
    leading = tuple(range(cotangent.rank - 2))
    op = cotangent.op
    summed = op.ReduceSum(cotangent, op.integers(*leading), keepdims=0) if leading else cotangent
    return summed.reshape(*operand.shape)


@gradient("Einsum", versions=(12, 28))
def einsum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """For each operand, the Einsum of dy and the others, summed over axes the operand lacks."""
    operands = [node.input(place) for place in range(len(node.inputs))]
    equation = parse(node.attribute("equation"), [operand.rank for operand in operands])
    return [
        _einsum_operand_cotangent(op, equation, operands, place, dy) if node.wants(place) else None
        for place in range(len(operands))
    ]


def _einsum_operand_cotangent(
    op: Builder, equation: Equation, operands: Sequence[Value], operand_index: int, dy: Value
) -> Value:
    terms, values = list(equation.terms), list(operands)
    term, sizes = terms.pop(operand_index), values.pop(operand_index).shape
    single, diagonals = _replace_repeated_letters(term, equation)
    eyes = [_identity_matrix(dy, sizes[term.index(pair[0])]) for pair in diagonals]
    terms = [equation.result, *terms, *diagonals]
    letters_given = "".join(letter for letter in single if any(letter in term for term in terms))
    product = op.Einsum(dy, *values, *eyes, equation=f"{','.join(terms)}->{letters_given}")
    missing = [axis for axis, letter in enumerate(single) if letter not in letters_given]
    if not missing:
        return product
    # Repeat the product along axes that only this operand has.
    wide = op.Unsqueeze(product, op.integers(*missing))
    filled = [n if axis in missing else wide.shape[axis] for axis, n in enumerate(sizes)]
    return op.Expand(wide, op.integers(*filled))


def _replace_repeated_letters(term: str, equation: Equation) -> tuple[str, list[str]]:
    """Replace repeated letters by unused ones, and list the pairs: "iji" gives "ija" and ["ia"]."""
    fresh = iter(fresh_letters("".join([*equation.terms, equation.result]), len(term)))
    letters, pairs = "", []
    for letter in term:
        letters += next(fresh) if letter in letters else letter
        if letters[-1] != letter:
            pairs.append(letter + letters[-1])
    return letters, pairs


def _identity_matrix(like: Value, size: int) -> Value:
    # Compute the matrix at run time instead of storing it in the file.
    op, numbers = like.op, ascending(size)
    equal = op.Equal(op.constant(numbers.reshape(-1, 1)), op.constant(numbers))
    return op.Cast(equal, to=like.elem_type)


_ELLIPSIS = "..."


@dataclass(frozen=True)
class Equation:
    """The letters of the axes of each operand and of the result, such as ("ij", "jk") and "ik"."""

    terms: tuple[str, ...]
    result: str


def parse(text: str, ranks: Sequence[int]) -> Equation:
    """Parse an Einsum equation; raises ModelError if it does not fit operands of ``ranks``.

    Unused letters replace each ellipsis, matched from the last axis backwards. Without an arrow,
    the result has the ellipsis, then the letters that occur once, in alphabetical order.
    """
    operands, arrow, right = text.replace(" ", "").partition("->")
    terms = operands.split(",")
    covered = [
        rank - len(term.replace(_ELLIPSIS, "")) for term, rank in zip(terms, ranks, strict=False)
    ]
    if len(terms) != len(ranks) or any(
        count if _ELLIPSIS not in term else count < 0
        for term, count in zip(terms, covered, strict=True)
    ):
        raise ModelError(f"equation {text!r} does not fit operands of ranks {list(ranks)}")
    implied = fresh_letters(operands + right, max([*covered, 0]))
    if not arrow:
        once = sorted(c for c in string.ascii_letters if operands.count(c) == 1)
        right = _ELLIPSIS + "".join(once)
    return Equation(
        tuple(
            term.replace(_ELLIPSIS, implied[len(implied) - count :])
            for term, count in zip(terms, covered, strict=True)
        ),
        right.replace(_ELLIPSIS, implied),
    )


def fresh_letters(used: Iterable[str], count: int) -> str:
    """The first ``count`` letters that do not occur in ``used``."""
    letters = set(used)
    return "".join(c for c in string.ascii_letters if c not in letters)[:count]
