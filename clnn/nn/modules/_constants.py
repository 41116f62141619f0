"""``__constants__`` of the layers: the settings that PyTorch's compiler takes for fixed, to which layers of programs add their own."""
from __future__ import annotations

_NAMES = """
output_size: AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
output_size return_indices: AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d
p inplace: AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout
kernel_size stride padding ceil_mode count_include_pad: AvgPool1d
kernel_size stride padding ceil_mode count_include_pad divisor_override: AvgPool2d AvgPool3d
reduction: BCELoss KLDivLoss L1Loss MSELoss MultiLabelMarginLoss MultiLabelSoftMarginLoss SmoothL1Loss SoftMarginLoss
track_running_stats momentum eps num_features affine: BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyBatchNorm1d \
LazyBatchNorm2d LazyBatchNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d SyncBatchNorm
in1_features in2_features out_features: Bilinear
alpha inplace: CELU ELU
blank reduction: CTCLoss
groups: ChannelShuffle
padding: CircularPad1d CircularPad2d CircularPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d
padding value: ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d
stride padding dilation groups padding_mode output_padding in_channels out_channels kernel_size: Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d \
ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
margin reduction: CosineEmbeddingLoss HingeEmbeddingLoss MarginRankingLoss
dim eps: CosineSimilarity
ignore_index reduction label_smoothing: CrossEntropyLoss
num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse: Embedding
num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode sparse include_last_offset padding_idx: EmbeddingBag
start_dim end_dim: Flatten
output_size kernel_size dilation padding stride: Fold
kernel_size return_indices output_size output_ratio: FractionalMaxPool2d FractionalMaxPool3d
approximate: GELU
dim: GLU LogSoftmax Softmax Softmin
mode input_size hidden_size num_layers bias batch_first dropout bidirectional proj_size: GRU LSTM RNN RNNBase
input_size hidden_size bias: GRUCell LSTMCell RNNCellBase
full eps reduction: GaussianNLLLoss
num_groups num_channels eps affine: GroupNorm
lambd: Hardshrink Softshrink
inplace: Hardsigmoid Hardswish Mish ReLU SELU SiLU
min_val max_val inplace: Hardtanh ReLU6
reduction delta: HuberLoss
norm_type kernel_size stride ceil_mode: LPPool1d LPPool2d LPPool3d
normalized_shape eps elementwise_affine: LayerNorm RMSNorm
in_features out_features: LazyLinear Linear
inplace negative_slope: LeakyReLU
num_classes out_features reduction ignore_index label_smoothing: LinearCrossEntropyLoss
size alpha beta k: LocalResponseNorm
kernel_size stride padding dilation return_indices ceil_mode: MaxPool1d MaxPool2d MaxPool3d
p margin reduction: MultiMarginLoss
batch_first: MultiheadAttention
ignore_index reduction: NLLLoss
num_parameters: PReLU
norm eps keepdim: PairwiseDistance
upscale_factor: PixelShuffle
downscale_factor: PixelUnshuffle
log_input full eps reduction: PoissonNLLLoss
input_size hidden_size bias nonlinearity: RNNCell
lower upper inplace: RReLU
beta threshold: Softplus
threshold value inplace: Threshold
norm: TransformerDecoder TransformerEncoder
norm_first: TransformerDecoderLayer TransformerEncoderLayer
margin p eps swap reduction: TripletMarginLoss
margin swap reduction: TripletMarginWithDistanceLoss
dim unflattened_size: Unflatten
kernel_size dilation padding stride: Unfold
size scale_factor mode align_corners name recompute_scale_factor: Upsample UpsamplingBilinear2d UpsamplingNearest2d
"""


def give(classes):
    """Set ``__constants__`` of the layers among ``classes``, by name."""
    for line in _NAMES.strip().splitlines():
        settings, _, names = line.partition(": ")
        for name in names.split():
            classes[name].__constants__ = settings.split()
