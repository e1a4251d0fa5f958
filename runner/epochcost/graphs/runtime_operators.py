"""The operators that a node of an optimised graph can be of: ONNX's, and ONNX Runtime's own.

What the latter compute is left to ``contrib``, of those that a model may have before it is
optimised.
"""

from __future__ import annotations

import functools

import onnx

# Those of ONNX Runtime 1.31 that no version of ONNX has: contributed, fused and internal ones.
_RUNTIMES = """
Affine AttnLSTM BeamSearch BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu
BifurcationDetector BitmaskBiasDropout BitmaskDropout BranchwiseRMSNorm CDist ComplexMul
ComplexMulConj ConvTransposeWithDynamicPads Crop CropAndResize DecoderAttention
DecoderMaskedMultiHeadAttention DecoderMaskedSelfAttention DequantizeBFP DequantizeWithOrder
DisentangledAttention_TRT DynamicQuantizeLSTM DynamicQuantizeMatMul DynamicSlice
DynamicSparseAttention DynamicTimeWarping EPContext EfficientNMS_TRT EmbedLayerNormalization
EngramGate ExpandDims FastGelu FusedConv FusedGemm FusedMatMul FusedMatMulActivation GRUUnit
GatedAdd GatedDeltaNet GatedRMSNorm GatedRelativePositionBias GatherBlockQuantized GemmFastGelu
GemmFloat8 GemmaRotaryEmbedding GivenTensorFill GreedySearch GroupNorm GroupQueryAttention
HyperConnectionPostMix HyperConnectionPreMix ImageScaler Inverse Irfft IsAllFinite
LinearAttentionGate LongformerAttention MRotaryEmbedding MatMulBlockQuantizedFp4Weight
MatMulBlockQuantizedFp8Weight MatMulBnb4 MatMulFpQ4 MatMulInteger16 MatMulIntegerToFloat
MatMulNBits MatMulNBitsMlp MatMulNBitsQkv MaxpoolWithMask MemcpyFromHost MemcpyToHost MoE
MulInteger MultiHeadAttention MultilevelCropAndResize_TRT MurmurHash3 NGramHashMapping
NGramRepeatBlock NhwcConv NhwcFusedConv NhwcMaxPool PackedAttention PackedMultiHeadAttention
PackedSparseAttentionIndexer PagedAttention ParametricSoftplus PyramidROIAlign_TRT QAttention
QEmbedLayerNormalization QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearConvTranspose
QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul QLinearReduceMean QLinearSigmoid
QLinearSoftmax QLinearWhere QMoE QOrderedAttention QOrderedGelu QOrderedLayerNormalization
QOrderedLongformerAttention QOrderedMatMul QuantizeBFP QuantizeWithOrder QuickGelu
ReduceSumInteger RelativePositionBias RemovePadding ReorderInput ReorderOutput RestorePadding Rfft
SampleOp Sampling Scale ScaledSiLU ScaledTanh SimplifiedLayerNormalization SkipGroupNorm
SkipLayerNormalization SkipSimplifiedLayerNormalization Snpe SparseAttention
SparseAttentionIndexer SparsePagedAttention SparseToDenseMatMul Tokenizer TorchEmbedding
TransposeMatMul UnfoldTensor VarlenCausalConvWithState VarlenNGramHashMapping WhisperBeamSearch
WordConvEmbedding
"""
RUNTIMES = frozenset(_RUNTIMES.split())


@functools.cache
def operator_names() -> frozenset[str]:
    """Every type of node that ONNX or ONNX Runtime knows, of any domain."""
    return RUNTIMES | {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
