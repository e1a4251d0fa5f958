"""Operators with a zero derivative, and operators that are refused with an error and a remedy.

Random draws count as constants, as in PyTorch: Bernoulli passes no gradient to its probabilities.
"""

from __future__ import annotations

from onnxstep.registry import refused, zero

for _op_type, _versions in {
    "Constant": (1, 9, 11, 12, 13, 19, 21, 23, 24, 25),
    "ConstantOfShape": (9, 20, 21, 23, 24, 25),
    "EyeLike": (9, 22),
    "RandomNormal": (1, 22),
    "RandomNormalLike": (1, 22),
    "RandomUniform": (1, 22),
    "RandomUniformLike": (1, 22),
    "Bernoulli": (15, 22),
    "Multinomial": (7, 22),
    "MelWeightMatrix": (17,),
    "Ceil": (6, 13),
    "Floor": (6, 13),
    "Round": (11, 22),
    "Sign": (9, 13),
    "BitShift": (11, 28),
    "BitwiseAnd": (18,),
    "BitwiseNot": (18,),
    "BitwiseOr": (18,),
    "BitwiseXor": (18,),
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
    "ArgMax": (1, 11, 12, 13),
    "ArgMin": (1, 11, 12, 13),
    "Hardmax": (1, 11, 13),
    "NonZero": (9, 13),
    "Shape": (1, 13, 15, 19, 21, 23, 24, 25),
    "Size": (1, 13, 19, 21, 23, 24, 25),
}.items():
    zero(_op_type, _versions)

refused(
    "Range",
    (11, 27),
    reason="its length depends on a differentiated value; freeze this value if it is no weight",
)


_LOOPS = (
    "export the model with the loop written out (PyTorch exports EmbeddingBag as a Loop: write it "
    "as an embedding and a sum or mean of rows)"
)
_BRANCH = (
    "which branch runs is known only at run time; export the model with the branch chosen, or make"
    " the condition, or the input that it follows from, a constant of the file"
)
_CONTAINER = "a sequence or optional value is not a tensor; export the model with plain tensors"

# Operators that few trained models contain.
_RARE = (
    "few trained models use this operator; freeze the parameters before it, or export other "
    "operators instead (ReduceL2 and Div for a norm, Conv for a windowed transform)"
)

for _op_type, _versions in {
    "AffineGrid": (20,),
    "Col2Im": (18,),
    "Compress": (9, 11, 28),
    "CumProd": (26,),
    "DFT": (17, 20),
    "Det": (11, 22),
    "GlobalLpPool": (2, 22),
    "GridSample": (16, 20, 22),
    "LpNormalization": (1, 22),
    "LpPool": (11, 18, 22),
    "MaxUnpool": (11, 22),
    "OneHot": (9, 11, 28),
    "ReverseSequence": (10, 28),
    "STFT": (17,),
    "TensorScatter": (24,),
}.items():
    refused(_op_type, _versions, _RARE)
refused(
    "DynamicQuantizeLinear",
    (11,),
    reason="it rounds its input to 8 bits; train the float model and quantize afterwards",
)
refused(
    "DequantizeLinear",
    (10, 13, 19, 21, 23, 24, 25, 28),
    reason="scales of quantized weights are not trained; freeze them",
)
refused("If", (1, 11, 13, 16, 19, 21, 23, 24, 25), _BRANCH)
refused("Loop", (1, 11, 13, 16, 19, 21, 23, 24, 25), _LOOPS)
refused("Scan", (8, 9, 11, 16, 19, 21, 23, 24, 25), _LOOPS)
for _op_type, _versions in {
    "ConcatFromSequence": (11,),
    "Optional": (15, 28),
    "OptionalGetElement": (15, 18, 28),
    "SequenceAt": (11,),
    "SequenceConstruct": (11,),
    "SequenceInsert": (11,),
    "SequenceMap": (17,),
    "SplitToSequence": (11, 24),
}.items():
    refused(_op_type, _versions, _CONTAINER)
