"""The signatures of PyTorch's functions that most programs call, as its errors print them: what a call with wrong arguments is told (see ``worded``).

A row: names, and after the colon the forms, parted by ``|``. ``ints2`` takes one integer for two, ``?`` None. A method has the form of the function without ``input``
and ``out``; METHODS are those that differ or are methods only.
"""
FUNCTIONS = """
add sub: Tensor input, Tensor other, *, Number alpha=1, Tensor out=None
mul matmul logical_and logical_or logical_xor atan2 maximum minimum fmax fmin: Tensor input, Tensor other, *, Tensor out=None
div: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Tensor other, *, str rounding_mode, Tensor out=None
    | Tensor input, Number other, *, str rounding_mode
true_divide floor_divide: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Number other
pow: Tensor input, Tensor exponent, *, Tensor out=None | Number self, Tensor exponent, *, Tensor out=None | Tensor input, Number exponent, *, Tensor out=None
mm bmm: Tensor input, Tensor mat2, *, Tensor out=None | Tensor input, Tensor mat2, dtype out_dtype, *, Tensor out=None
mv: Tensor input, Tensor vec, *, Tensor out=None
dot: Tensor input, Tensor tensor, *, Tensor out=None
addmm: Tensor input, Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1, Tensor out=None
    | Tensor input, Tensor mat1, Tensor mat2, dtype out_dtype, *, Number beta=1, Number alpha=1, Tensor out=None
baddbmm: Tensor input, Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1, Tensor out=None
    | Tensor input, Tensor batch1, Tensor batch2, dtype out_dtype, *, Number beta=1, Number alpha=1, Tensor out=None
exp log log2 log10 log1p expm1 sqrt rsqrt abs neg sin cos tan asin acos atan sinh cosh tanh sigmoid relu sign floor ceil trunc frac reciprocal square erf erfc
    erfinv lgamma digamma isnan isinf logical_not bitwise_not nonzero silu mish hardswish hardsigmoid: Tensor input, *, Tensor out=None
round: Tensor input, *, Tensor out=None | Tensor input, *, int decimals, Tensor out=None
isfinite detach selu numel is_floating_point: Tensor input
bitwise_and bitwise_or bitwise_xor remainder: Tensor input, Tensor other, *, Tensor out=None | Number self, Tensor other
    | Tensor input, Number other, *, Tensor out=None
fmod eq ne lt le gt ge: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Number other, *, Tensor out=None
clamp: Tensor input, Tensor min=None, Tensor max=None, *, Tensor out=None | Tensor input, Number min=None, Number max=None, *, Tensor out=None
clamp_min: Tensor input, Tensor min, *, Tensor out=None | Tensor input, Number min, *, Tensor out=None
clamp_max: Tensor input, Tensor max, *, Tensor out=None | Tensor input, Number max, *, Tensor out=None
isclose allclose: Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False
equal: Tensor input, Tensor other
lerp: Tensor input, Tensor end, Tensor weight, *, Tensor out=None | Tensor input, Tensor end, Number weight, *, Tensor out=None
where: Tensor condition | Tensor condition, Tensor input, Tensor other, *, Tensor out=None | Tensor condition, Number self, Tensor other
    | Tensor condition, Tensor input, Number other | Tensor condition, Number self, Number other
sum: Tensor input, *, dtype dtype=None | Tensor input, ints1? dim, bool keepdim=False, *, dtype dtype=None, Tensor out=None
mean: Tensor input, *, dtype dtype=None, Tensor out=None | Tensor input, ints1? dim, bool keepdim=False, *, dtype dtype=None, Tensor out=None
std var: Tensor input, ints1? dim, bool unbiased=True, bool keepdim=False, *, Tensor out=None
    | Tensor input, ints1? dim=None, *, Number correction=None, bool keepdim=False, Tensor out=None | Tensor input, bool unbiased=True
prod: Tensor input, *, dtype dtype=None | Tensor input, int dim, bool keepdim=False, *, dtype dtype=None, Tensor out=None
amax amin: Tensor input, ints1 dim=[], bool keepdim=False, *, Tensor out=None
any all: Tensor input, *, Tensor out=None | Tensor input, ints dim=None, bool keepdim=False, *, Tensor out=None
    | Tensor input, int dim, bool keepdim=False, *, Tensor out=None
argmax argmin: Tensor input, int dim=None, bool keepdim=False, *, Tensor out=None
logsumexp: Tensor input, ints1 dim, bool keepdim=False, *, Tensor out=None
nansum nanmean: Tensor input, ints1 dim=None, bool keepdim=False, *, dtype dtype=None, Tensor out=None
median nanmedian: Tensor input | Tensor input, int dim, bool keepdim=False, *, Tensors out=None
mode: Tensor input, int dim=-1, bool keepdim=False, *, Tensors out=None
max min: Tensor input, *, Tensor out=None | Tensor input, Tensor other, *, Tensor out=None | Tensor input, int dim, bool keepdim=False, *, Tensors out=None
var_mean std_mean: Tensor input, ints1? dim, bool unbiased=True, bool keepdim=False
    | Tensor input, ints1? dim=None, *, Number correction=None, bool keepdim=False | Tensor input, bool unbiased=True
aminmax: Tensor input, *, int dim=None, bool keepdim=False, Tensors out=None
count_nonzero: Tensor input, int dim=None | Tensor input, ints dim
cumsum cumprod: Tensor input, int dim, *, dtype dtype=None, Tensor out=None
cummax cummin: Tensor input, int dim, *, Tensors out=None
logcumsumexp: Tensor input, int dim, *, Tensor out=None
softmax log_softmax: Tensor input, int dim, dtype dtype=None, *, Tensor out=None
argsort: Tensor input, *, bool? stable, int dim=-1, bool descending=False, Tensor out=None | Tensor input, int dim=-1, bool descending=False
sort: Tensor input, *, bool? stable, int dim=-1, bool descending=False, Tensors out=None | Tensor input, int dim=-1, bool descending=False, *, Tensors out=None
topk: Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True, *, Tensors out=None
kthvalue: Tensor input, int k, int dim=-1, bool keepdim=False, *, Tensors out=None
quantile nanquantile: Tensor input, Tensor q, int dim=None, bool keepdim=False, *, str interpolation="linear", Tensor out=None
    | Tensor input, float q, int dim=None, bool keepdim=False, *, str interpolation="linear", Tensor out=None
flip: Tensor input, ints dims, *, Tensor out=None
roll: Tensor input, ints1 shifts, ints1 dims=[], *, Tensor out=None
squeeze: Tensor input | Tensor input, int dim | Tensor input, ints dim
unsqueeze: Tensor input, int dim
unbind: Tensor input, int dim=0
diff: Tensor input, int n=1, int dim=-1, Tensor prepend=None, Tensor append=None, *, Tensor out=None
cat concat stack: Tensors tensors, int dim=0, *, Tensor out=None
hstack vstack: Tensors tensors, *, Tensor out=None
chunk: Tensor input, int chunks, int dim=0
tensor_split: Tensor input, ints indices, int dim=0 | Tensor input, Tensor tensor_indices_or_sections, int dim=0 | Tensor input, int sections, int dim=0
gather: Tensor input, int dim, Tensor index, *, bool sparse_grad=False, Tensor out=None
scatter: Tensor input, int dim, Tensor index, Tensor src, *, Tensor out=None | Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor out=None
    | Tensor input, int dim, Tensor index, Number value, *, Tensor out=None | Tensor input, int dim, Tensor index, Number value, *, str reduce, Tensor out=None
scatter_add: Tensor input, int dim, Tensor index, Tensor src, *, Tensor out=None
index_select: Tensor input, int dim, Tensor index, *, Tensor out=None
masked_select: Tensor input, Tensor mask, *, Tensor out=None
masked_fill: Tensor input, Tensor mask, Tensor value | Tensor input, Tensor mask, Number value
index_fill: Tensor input, int dim, Tensor index, Tensor value | Tensor input, int dim, Tensor index, Number value
index_add: Tensor input, int dim, Tensor index, Tensor source, *, Number alpha=1, Tensor out=None
index_copy: Tensor input, int dim, Tensor index, Tensor source, *, Tensor out=None
take: Tensor input, Tensor index, *, Tensor out=None
take_along_dim: Tensor input, Tensor indices, int dim=None, *, Tensor out=None
reshape: Tensor input, ints shape
transpose: Tensor input, int dim0, int dim1
permute tile: Tensor input, ints dims
flatten: Tensor input, int start_dim=0, int end_dim=-1
swapaxes: Tensor input, int axis0, int axis1
movedim: Tensor input, int source, int destination | Tensor input, ints source, ints destination
broadcast_to: Tensor input, ints size
repeat_interleave: Tensor input, Tensor repeats, int dim=None, *, int output_size=None | Tensor repeats, *, int output_size=None
    | Tensor input, int repeats, int dim=None, *, int output_size=None
narrow: Tensor input, int dim, Tensor start, int length | Tensor input, int dim, int start, int length
select: Tensor input, int dim, int index
diagonal: Tensor input, int offset=0, int dim1=0, int dim2=1
diag tril triu: Tensor input, int diagonal=0, *, Tensor out=None
diag_embed: Tensor input, int offset=0, int dim1=-2, int dim2=-1, *, Tensor out=None
outer: Tensor input, Tensor vec2, *, Tensor out=None
cross: Tensor input, Tensor other, int dim=None, *, Tensor out=None
dist: Tensor input, Tensor other, Number p=2, *, Tensor out=None
histc: Tensor input, int bins=100, Number min=0, Number max=0, *, Tensor out=None
searchsorted: Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool right=False, str side=None, Tensor sorter=None, Tensor out=None
    | Tensor sorted_sequence, Number self, *, bool out_int32=False, bool right=False, str side=None, Tensor sorter=None, Tensor out=None
bucketize: Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False, Tensor out=None
    | Number self, Tensor boundaries, *, bool out_int32=False, bool right=False
multinomial: Tensor input, int num_samples, bool replacement=False, *, Generator generator=None, Tensor out=None
bernoulli: Tensor input, *, Generator generator=None, Tensor out=None | Tensor input, float p, *, Generator generator=None
rand randn: ints size, *, Generator generator, FACTORY | ints size, *, FACTORY
randint: int high, ints size, *, Generator generator, FACTORY | int high, ints size, *, FACTORY | int low, int high, ints size, *, Generator generator, FACTORY
    | int low, int high, ints size, *, FACTORY
randperm: int n, *, Generator generator, FACTORY | int n, *, FACTORY
eye: int n, *, FACTORY | int n, int m, *, FACTORY
arange: Number end, *, FACTORY | Number start, Number end, *, LIKE | Number start, Number end, Number step=1, *, FACTORY
linspace: Tensor start, Tensor end, int steps, *, FACTORY | Number start, Tensor end, int steps, *, FACTORY | Tensor start, Number end, int steps, *, FACTORY
    | Number start, Number end, int steps, *, FACTORY
logspace: Tensor start, Tensor end, int steps, float base=10.0, *, FACTORY | Number start, Tensor end, int steps, float base=10.0, *, FACTORY
    | Tensor start, Number end, int steps, float base=10.0, *, FACTORY | Number start, Number end, int steps, float base=10.0, *, FACTORY
zeros_like ones_like empty_like: Tensor input, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=None, memory_format
    memory_format=None, Tensor out=None
full_like: Tensor input, Number fill_value, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=None, memory_format
    memory_format=None, Tensor out=None
rand_like randn_like: Tensor input, *, Generator generator, memory_format memory_format=None, LIKE | Tensor input, *, memory_format memory_format=None, LIKE
randint_like: Tensor input, int low, int high, *, Generator generator, memory_format memory_format=None, LIKE
    | Tensor input, int low, int high, *, memory_format memory_format=None, LIKE
    | Tensor input, Tensor high, *, Generator generator, memory_format memory_format=None, LIKE
    | Tensor input, Tensor high, *, memory_format memory_format=None, LIKE
    | Tensor input, int high, *, Generator generator, memory_format memory_format=None, LIKE | Tensor input, int high, *, memory_format memory_format=None, LIKE
clone: Tensor input, *, memory_format memory_format=None, Tensor out=None
conv1d: Tensor input, Tensor weight, Tensor bias=None, ints1 stride=1, ints1 padding=0, ints1 dilation=1, int groups=1
    | Tensor input, Tensor weight, Tensor bias=None, ints1 stride=1, str padding="valid", ints1 dilation=1, int groups=1
conv2d: Tensor input, Tensor weight, Tensor bias=None, ints2 stride=1, ints2 padding=0, ints2 dilation=1, int groups=1
    | Tensor input, Tensor weight, Tensor bias=None, ints2 stride=1, str padding="valid", ints2 dilation=1, int groups=1
conv3d: Tensor input, Tensor weight, Tensor bias=None, ints3 stride=1, ints3 padding=0, ints3 dilation=1, int groups=1
    | Tensor input, Tensor weight, Tensor bias=None, ints3 stride=1, str padding="valid", ints3 dilation=1, int groups=1
conv_transpose1d: Tensor input, Tensor weight, Tensor bias=None, ints1 stride=[1], ints1 padding=[0], ints1 output_padding=[0], int groups=1, ints1 dilation=[1]
conv_transpose2d: Tensor input, Tensor weight, Tensor bias=None, ints2 stride=[1, 1], ints2 padding=[0, 0], ints2 output_padding=[0, 0], int groups=1, ints2
    dilation=[1, 1]
cosine_similarity: Tensor x1, Tensor x2, int dim=1, float eps=1e-08
pixel_shuffle: Tensor input, int upscale_factor, *, Tensor out=None
prelu: Tensor input, Tensor weight
threshold: Tensor input, Number threshold, Number value, *, Tensor out=None
split_with_sizes: Tensor input, ints split_sizes, int dim=0
linear: Tensor input, Tensor weight, Tensor bias=None, *, Tensor out=None
gelu: Tensor input, *, str approximate="none", Tensor out=None
leaky_relu: Tensor input, Number negative_slope=0.01, *, Tensor out=None
elu: Tensor input, Number alpha=1, Number scale=1, Number input_scale=1, *, Tensor out=None
hardtanh: Tensor input, Number min_val=-1, Number max_val=1, *, Tensor out=None
softplus: Tensor input, Number beta=1, Number threshold=20, *, Tensor out=None
one_hot: Tensor input, int num_classes=-1
max_pool2d: Tensor input, ints2 kernel_size, ints2 stride=[], ints2 padding=0, ints2 dilation=1, bool ceil_mode=False
pad: Tensor input, ints pad, str mode="constant", float value=None
scaled_dot_product_attention: Tensor query, Tensor key, Tensor value, Tensor attn_mask=None, float dropout_p=0., bool is_causal=False, *, float scale=None,
    bool enable_gqa=False
zeros ones: ints size, *, FACTORY
empty: ints size, *, memory_format memory_format=None, FACTORY
full: ints size, Number fill_value, *, FACTORY
normal: Tensor mean, Tensor std, *, Generator generator=None, Tensor out=None | Tensor mean, float std=1, *, Generator generator=None, Tensor out=None
    | float mean, Tensor std, *, Generator generator=None, Tensor out=None
    | float mean, float std, ints size, *, Generator generator=None, Tensor out=None, LIKE
hann_window bartlett_window blackman_window: int window_length, *, LIKE | int window_length, bool periodic, *, LIKE
kaiser_window: int window_length, *, LIKE | int window_length, bool periodic, *, LIKE | int window_length, bool periodic, float beta, *, LIKE
hamming_window: int window_length, *, LIKE | int window_length, bool periodic, *, LIKE | int window_length, bool periodic, float alpha, *, LIKE
    | int window_length, bool periodic, float alpha, float beta, *, LIKE
range: Number start, Number end, Number step=1, *, FACTORY
empty_strided: ints size, ints stride, *, LIKE
scalar_tensor: Number s, *, LIKE
tril_indices triu_indices: int row, int col, int offset=0, *, LIKE
vander: Tensor x, int N=None, bool increasing=False
complex: Tensor real, Tensor imag, *, Tensor out=None
fill: Tensor input, Tensor value | Tensor input, Number value
polar: Tensor abs, Tensor angle, *, Tensor out=None
layer_norm: Tensor input, ints normalized_shape, Tensor weight=None, Tensor bias=None, float eps=1e-05, bool cudnn_enable=True
"""

METHODS = """
pow: Tensor exponent | Number exponent
mm bmm: Tensor mat2
addmm: Tensor mat1, Tensor mat2, *, Number beta=1, Number alpha=1
baddbmm: Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1
bitwise_and bitwise_or bitwise_xor remainder: Tensor other | Number other
where: Tensor condition, Tensor other | Tensor condition, Number other
nonzero:  | *, bool as_tuple
expand: ints size, *, bool implicit=False
view: dtype dtype | ints size
repeat: ints repeats
repeat_interleave: Tensor repeats, int dim=None, *, int output_size=None | int repeats, int dim=None, *, int output_size=None
expand_as view_as type_as: Tensor other
unfold: int dimension, int size, int step
normal_: float mean=0., float std=1., *, Generator generator=None
uniform_: float from=0., float to=1., *, Generator generator=None
random_: *, Generator generator=None | int from, int to, *, Generator generator=None | int to, *, Generator generator=None
bernoulli_: Tensor p, *, Generator generator=None | float p=0.5, *, Generator generator=None
exponential_: float lambd=1., *, Generator generator=None
copy_: Tensor other, bool non_blocking=False
masked_fill_: Tensor mask, Tensor value | Tensor mask, Number value
masked_scatter_: Tensor mask, Tensor source
scatter_: int dim, Tensor index, Tensor src | int dim, Tensor index, Tensor src, *, str reduce | int dim, Tensor index, Number value
    | int dim, Tensor index, Number value, *, str reduce
scatter_add_: int dim, Tensor index, Tensor src
index_add_: int dim, Tensor index, Tensor source, *, Number alpha=1
index_fill_: int dim, Tensor index, Tensor value | int dim, Tensor index, Number value
index_copy_: int dim, Tensor index, Tensor source
new_zeros new_ones new_empty: ints size, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=None
to: device device=None, dtype dtype=None, bool non_blocking=False, bool copy=False, *, memory_format memory_format=None
    | dtype dtype, bool non_blocking=False, bool copy=False, *, memory_format memory_format=None
    | Tensor tensor, bool non_blocking=False, bool copy=False, *, memory_format memory_format=None
new_tensor: object data, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=None
new_full: ints size, Number fill_value, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=None
"""

# What the words for many parameters stand for.
SHORT = {"FACTORY": "Tensor out=None, LIKE",
         "LIKE": "dtype dtype=None, layout layout=None, device device=None, bool pin_memory=False, bool requires_grad=False"}
# Functions of ``nn.functional`` written in Python there, which hand all on by position.
BY_POSITION = frozenset("layer_norm leaky_relu elu hardtanh max_pool2d pad".split())
# Where a number stands for a tensor.
NUMBERS = frozenset("add sub mul div true_divide floor_divide copy".split())
# Which have another form, an old one that is not shown.
OLD = frozenset("add sub addmm baddbmm".split())
