"""Operators with a zero derivative, and operators that are refused with an error and a remedy.

Random draws count as constants, as in PyTorch: Bernoulli passes no gradient to its probabilities.
"""

from __future__ import annotations

from onnxstep.registry import refused, zero

for _op_type, _versions in {
    "Constant": (1, 9, 11, 12, 13, 19, 21, 23, 24, 25),
    "ConstantOfShape": (9, 20, 21, 23, 24, 25),
    "EyeLike": (9, 22),
    **dict.fromkeys(("RandomNormal", "RandomNormalLike"), (1, 22)),
    **dict.fromkeys(("RandomUniform", "RandomUniformLike"), (1, 22)),
    "Bernoulli": (15, 22),
    "Multinomial": (7, 22),
    "MelWeightMatrix": (17,),
    **dict.fromkeys(("Ceil", "Floor"), (6, 13)),
    "Round": (11, 22),
    "Sign": (9, 13),
    "BitShift": (11, 28),
    **dict.fromkeys(("BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor"), (18,)),
    "Equal": (7, 11, 13, 19),
    **dict.fromkeys(("Greater", "Less"), (7, 9, 13)),
    **dict.fromkeys(("GreaterOrEqual", "LessOrEqual"), (12, 16)),
    **dict.fromkeys(("And", "Or", "Xor"), (7,)),
    "Not": (1,),
    "IsInf": (10, 20),
    "IsNaN": (9, 13, 20),
    **dict.fromkeys(("ArgMax", "ArgMin"), (1, 11, 12, 13)),
    "Hardmax": (1, 11, 13),
    "NonZero": (9, 13),
    "Shape": (1, 13, 15, 19, 21, 23, 24, 25),
    "Size": (1, 13, 19, 21, 23, 24, 25),
}.items():
    zero(_op_type, _versions)

_LOOPS = (
    "export the model with the loop written out (PyTorch exports EmbeddingBag as a Loop: write it "
    "as an embedding and a sum or mean of rows)"
)
_BRANCH = (
    "which branch runs is known only at run time; export the model with the branch chosen, or make"
    " the condition, or the input that it follows from, a constant of the file"
)
_CONTAINER = "a sequence or optional value is not a tensor; export the model with plain tensors"

_FLOAT_MODEL = "train the float model and quantize afterwards"
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

for _op_type, _versions, _reason in (
    ("BitCast", (26,), "it reads the bits of its input as another type"),
    ("ConvInteger", (10,), f"it convolves integers; {_FLOAT_MODEL}"),
    (
        "DeformConv",
        (19, 22),
        "its samples lie between elements, at trainable offsets, and ONNX Runtime has no CUDA "
        "kernel for it",
    ),
    (
        "DequantizeLinear",
        (10, 13, 19, 21, 23, 24, 25, 28),
        "scales of quantized weights are not trained; freeze them",
    ),
    ("DynamicQuantizeLinear", (11,), f"it rounds its input to 8 bits; {_FLOAT_MODEL}"),
    (
        "GroupNormalization",
        (18,),
        "ONNX withdrew this version, whose scale is for groups; export at opset 21 or newer",
    ),
    ("If", (1, 11, 13, 16, 19, 21, 23, 24, 25), _BRANCH),
    ("Loop", (1, 11, 13, 16, 19, 21, 23, 24, 25), _LOOPS),
    (
        "MaxRoiPool",
        (1, 22),
        "ONNX Runtime does not return the places of its maxima, and has no CUDA kernel for it",
    ),
    ("QLinearConv", (10,), f"it convolves integers; {_FLOAT_MODEL}"),
    (
        "Range",
        (11, 27),
        "its length depends on a differentiated value; freeze this value if it is no weight",
    ),
    (
        "RoiAlign",
        (10, 16, 22),
        "its samples lie between elements, in boxes that a detector computes",
    ),
    ("Scan", (8, 9, 11, 16, 19, 21, 23, 24, 25), _LOOPS),
    ("Unique", (11, 28), "the number of its outputs depends on data"),
):
    refused(_op_type, _versions, _reason)
