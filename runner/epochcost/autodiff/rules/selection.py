"""Comparing elements and choosing among them."""

from __future__ import annotations

import functools
import operator

from epochcost.autodiff.builder import Builder, Value
from epochcost.autodiff.node import Node
from epochcost.autodiff.registry import Cotangents, gradient, zero


def indicator(condition: Value, like: Value) -> Value:
    """1 where the condition holds and 0 elsewhere, in the element type of ``like``."""
    return condition.op.Cast(condition, to=like.elem_type)


@gradient("Where", versions=(9, 16))
def where(op: Builder, node: Node, dy: Value) -> Cotangents:
    """D(c ? a : b) = c ? da : db; chosen, not multiplied, so that no NaN comes from the other."""
    chosen, none = node.input(0), op.scalar(0.0, dy.elem_type)
    da = op.Where(chosen, dy, none) if node.wants(1) else None
    db = op.Where(chosen, none, dy) if node.wants(2) else None
    return None, da, db


@gradient("Max", versions=(8, 12, 13))
@gradient("Min", versions=(8, 12, 13))
def extremum(op: Builder, node: Node, dy: Value) -> Cotangents:
    """The cotangent goes to the operand that is the result; equal ones share it, as in PyTorch."""
    if len(node.inputs) == 1:
        return dy
    shares = [indicator(op.Equal(x, node.y), dy) for x in node.inputs if x is not None]
    part = dy / functools.reduce(operator.add, shares)
    return [part * share for share in shares]


@gradient("Clip", versions=(11, 12, 13))
def clip(op: Builder, node: Node, dy: Value) -> Cotangents:
    """D(min(max(x, low), high)): to x where it is unchanged, else to the bound that replaced it.

    A bound that x meets exactly leaves it unchanged, as PyTorch's clamp has it.
    """
    x, low, high = node.x, node.optional_input(1), node.optional_input(2)
    dx = dy * indicator(op.Equal(x, node.y), dy)
    dlow = dhigh = None
    if low is not None and node.wants(1):
        dlow = dy * indicator(_raised(op, x, low, high), dy)
    if high is not None and node.wants(2):
        raised = x if low is None else op.Max(x, low)
        dhigh = dy * indicator(op.Greater(raised, high), dy)
    return dx, dlow, dhigh


def _raised(op: Builder, x: Value, low: Value, high: Value | None) -> Value:
    """Where the lower bound is the result; a higher bound below it always wins."""
    below = op.Less(x, low)
    return below if high is None else op.And(below, op.Not(op.Less(high, low)))


for _op_type, _versions in {
    "Equal": (7, 11, 13, 19),
    "Greater": (7, 9, 13),
    "GreaterOrEqual": (12, 16),
    "Less": (7, 9, 13),
    "LessOrEqual": (12, 16),
    "And": (7,),
    "Or": (7,),
    "Xor": (7,),
    "Not": (1,),
    "IsInf": (10, 20),
    "IsNaN": (9, 13, 20),
}.items():
    zero(_op_type, _versions)
