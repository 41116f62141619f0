"""The signatures of PyTorch's functions that most programs call, as its errors print them: what a call with wrong arguments is told (see ``worded``).

A row: names, and after the colon the forms, parted by ``|``. ``ints2`` takes one integer for two, ``?`` None. A method has the form of the function without ``input``
and ``out``; METHODS are those that differ or are methods only.
"""
FUNCTIONS = """
add sub: Tensor input, Tensor other, *, Number alpha=1, Tensor out=None
mul matmul logical_and logical_or logical_xor atan2 maximum minimum fmax fmin: Tensor input, Tensor other, *, Tensor out=None
div: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Tensor other, *, str? rounding_mode, Tensor out=None
    | Tensor input, Number other, *, str? rounding_mode
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
    erfinv lgamma digamma isnan isinf logical_not bitwise_not silu mish hardswish hardsigmoid: Tensor input, *, Tensor out=None
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
rand randn: ints size, *, Generator? generator, FACTORY | ints size, *, FACTORY
randint: int high, ints size, *, Generator? generator, FACTORY | int high, ints size, *, FACTORY | int low, int high, ints size, *, Generator? generator, FACTORY
    | int low, int high, ints size, *, FACTORY
randperm: int n, *, Generator? generator, FACTORY | int n, *, FACTORY
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
rand_like randn_like: Tensor input, *, Generator? generator, memory_format memory_format=None, LIKE | Tensor input, *, memory_format memory_format=None, LIKE
randint_like: Tensor input, int low, int high, *, Generator? generator, memory_format memory_format=None, LIKE
    | Tensor input, int low, int high, *, memory_format memory_format=None, LIKE
    | Tensor input, Tensor high, *, Generator? generator, memory_format memory_format=None, LIKE
    | Tensor input, Tensor high, *, memory_format memory_format=None, LIKE
    | Tensor input, int high, *, Generator? generator, memory_format memory_format=None, LIKE | Tensor input, int high, *, memory_format memory_format=None, LIKE
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
adjoint argwhere conj corrcoef det fliplr flipud isreal logdet matrix_exp positive ravel t: Tensor input
absolute arccos arccosh arcsin arcsinh arctan arctanh conj_physical deg2rad exp2 fix inverse isneginf isposinf msort negative rad2deg sgn signbit sinc trace: Tensor
    input, *, Tensor out=None
adaptive_avg_pool1d: Tensor input, ints1 output_size, *, Tensor out=None
addbmm: Tensor input, Tensor batch1, Tensor batch2, *, Number beta=1, Number alpha=1, Tensor out=None
addcdiv addcmul: Tensor input, Tensor tensor1, Tensor tensor2, *, Number value=1, Tensor out=None
addmv: Tensor input, Tensor mat, Tensor vec, *, Number beta=1, Number alpha=1, Tensor out=None
addr: Tensor input, Tensor vec1, Tensor vec2, *, Number beta=1, Number alpha=1, Tensor out=None
arctan2 hypot igamma igammac inner kron lcm logaddexp logaddexp2 nextafter vdot: Tensor input, Tensor other, *, Tensor out=None
as_strided: Tensor input, ints size, ints stride, int storage_offset=None
as_strided_scatter: Tensor input, Tensor src, ints size, ints stride, int storage_offset=None, *, Tensor out=None
avg_pool1d: Tensor input, ints1 kernel_size, ints1 stride=[], ints1 padding=[0], bool ceil_mode=False, bool count_include_pad=True, *, Tensor out=None
bilinear: Tensor input1, Tensor input2, Tensor weight, Tensor bias=None
bincount: Tensor input, Tensor weights=None, int minlength=0, *, Tensor out=None
bitwise_left_shift bitwise_right_shift: Tensor input, Tensor other, *, Tensor out=None | Number self, Tensor other | Tensor input, Number other, *, Tensor out=None
channel_shuffle: Tensor input, int groups, *, Tensor out=None
cholesky: Tensor input, bool upper=False, *, Tensor out=None
cholesky_solve: Tensor input, Tensor input2, bool upper=False, *, Tensor out=None
clip: Tensor input, Tensor min=None, Tensor max=None, *, Tensor out=None | Tensor input, Number min=None, Number max=None, *, Tensor out=None
column_stack dstack row_stack: Tensors tensors, *, Tensor out=None
combinations: Tensor input, int r=2, bool with_replacement=False
concatenate: Tensors tensors, int dim=0, *, Tensor out=None
conv_transpose3d: Tensor input, Tensor weight, Tensor bias=None, ints3 stride=[1, 1, 1], ints3 padding=[0, 0, 0], ints3 output_padding=[0, 0, 0], int groups=1, ints3
    dilation=[1, 1, 1]
copysign greater greater_equal less less_equal not_equal: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Number other, *, Tensor out=None
cov: Tensor input, *, int correction=1, Tensor fweights=None, Tensor aweights=None
cumulative_trapezoid trapezoid: Tensor y, Tensor x, *, int dim=-1 | Tensor y, *, Number dx=1, int dim=-1
diagflat: Tensor input, int offset=0
diagonal_scatter: Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1, *, Tensor out=None
divide: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Tensor other, *, str? rounding_mode, Tensor out=None | Tensor input, Number other | Tensor
    input, Number other, *, str? rounding_mode
dsplit hsplit vsplit: Tensor input, int sections | Tensor input, ints indices
float_power: Tensor input, Tensor exponent, *, Tensor out=None | Number self, Tensor exponent, *, Tensor out=None | Tensor input, Number exponent, *, Tensor out=None
slogdet: Tensor input, *, Tensors out=None
ger: Tensor input, Tensor vec2, *, Tensor out=None
hardshrink: Tensor input, Number lambd=0.5, *, Tensor out=None
heaviside: Tensor input, Tensor values, *, Tensor out=None
histogram: Tensor input, Tensor bins, *, Tensor weight=None, bool density=False, Tensors out=None | Tensor input, int bins=100, *, floats range=None, Tensor
    weight=None, bool density=False, Tensors out=None
index_reduce: Tensor input, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True, Tensor out=None
logit: Tensor input, float eps=None, *, Tensor out=None
lu_solve: Tensor input, Tensor LU_data, Tensor LU_pivots, *, Tensor out=None
masked_scatter: Tensor input, Tensor mask, Tensor source, *, Tensor out=None
matrix_power: Tensor input, int n, *, Tensor out=None
moveaxis: Tensor input, int source, int destination | Tensor input, ints source, ints destination
multiply: Tensor input, Tensor other, *, Tensor out=None | Tensor input, Number other
mvlgamma: Tensor input, int p, *, Tensor out=None
nan_to_num: Tensor input, float nan=None, float posinf=None, float neginf=None, *, Tensor out=None
orgqr: Tensor input, Tensor input2, *, Tensor out=None
ormqr: Tensor input, Tensor input2, Tensor input3, bool left=True, bool transpose=False, *, Tensor out=None
pairwise_distance: Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False
pdist: Tensor input, float p=2.0
pinverse: Tensor input, float rcond=1e-15
pixel_unshuffle: Tensor input, int downscale_factor, *, Tensor out=None
polygamma: int n, Tensor input, *, Tensor out=None
put: Tensor input, Tensor index, Tensor source, bool accumulate=False, *, Tensor out=None
qr: Tensor input, bool some=True, *, Tensors out=None
renorm: Tensor input, Number p, int dim, Number maxnorm, *, Tensor out=None
rot90: Tensor input, int k=1, ints dims=[0, 1], *, Tensor out=None
rsub: Tensor input, Tensor other, *, Number alpha=1 | Tensor input, Number other, Number alpha=1
scatter_reduce: Tensor input, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True, Tensor out=None
select_scatter: Tensor input, Tensor src, int dim, int index, *, Tensor out=None
slice_scatter: Tensor input, Tensor src, int dim=0, int start=None, int end=None, int step=1, *, Tensor out=None
subtract: Tensor input, Tensor other, *, Number alpha=1, Tensor out=None | Tensor input, Number other, Number alpha=1
svd: Tensor input, bool some=True, bool compute_uv=True, *, Tensors out=None
swapdims: Tensor input, int dim0, int dim1
trapz: Tensor y, *, float dx=1, int dim=-1 | Tensor y, Tensor x, *, int dim=-1
triangular_solve: Tensor input, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, *, Tensors out=None
unflatten: Tensor input, int dim, ints sizes
angle acosh asinh atanh i0 alias_copy detach_copy: Tensor input, *, Tensor out=None
ldexp gcd: Tensor input, Tensor other, *, Tensor out=None
cholesky_inverse: Tensor input, bool upper=False, *, Tensor out=None
isin: Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False, Tensor out=None
    | Number element, Tensor test_elements, *, bool assume_unique=False, bool invert=False, Tensor out=None
    | Tensor elements, Number test_element, *, bool assume_unique=False, bool invert=False, Tensor out=None
constant_pad_nd: Tensor input, ints pad, Number value=0
as_strided_copy: Tensor input, ints size, ints stride, int storage_offset=None, *, Tensor out=None
max_pool1d: Tensor input, ints1 kernel_size, ints1 stride=[], ints1 padding=0, ints1 dilation=1, bool ceil_mode=False
max_pool3d: Tensor input, ints3 kernel_size, ints3 stride=[], ints3 padding=0, ints3 dilation=1, bool ceil_mode=False
adaptive_max_pool1d: Tensor input, ints1 output_size
frexp geqrf: Tensor input, *, Tensors out=None
real imag is_complex is_conj is_neg is_signed is_nonzero view_as_real view_as_complex resolve_conj resolve_neg zero_: Tensor input
is_same_size: Tensor input, Tensor other
lu_unpack: Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True, *, Tensors out=None
nonzero_static: Tensor input, *, int size, int fill_value=-1, Tensor out=None
poisson: Tensor input, Generator generator=None
linalg_cholesky: Tensor input, *, bool upper=False, Tensor out=None
linalg_cholesky_ex: Tensor input, *, bool upper=False, bool check_errors=False, Tensors out=None
linalg_cond: Tensor input, Number p=None, *, Tensor out=None | Tensor input, str p, *, Tensor out=None
linalg_cross: Tensor input, Tensor other, *, int dim=-1, Tensor out=None
linalg_eig: Tensor input, *, Tensors out=None
linalg_eigh: Tensor input, str UPLO="L", *, Tensors out=None
linalg_eigvals: Tensor input, *, Tensor out=None
linalg_eigvalsh: Tensor input, str UPLO="L", *, Tensor out=None
linalg_inv_ex: Tensor A, *, bool check_errors=False, Tensors out=None
linalg_ldl_factor: Tensor input, *, bool hermitian=False, Tensors out=None
linalg_ldl_factor_ex: Tensor input, *, bool hermitian=False, bool check_errors=False, Tensors out=None
linalg_ldl_solve: Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False, Tensor out=None
linalg_lstsq: Tensor input, Tensor b, float rcond=None, *, str driver=None, Tensors out=None
linalg_lu linalg_lu_factor: Tensor A, *, bool pivot=True, Tensors out=None
linalg_lu_factor_ex: Tensor A, *, bool pivot=True, bool check_errors=False, Tensors out=None
linalg_lu_solve: Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False, Tensor out=None
linalg_matrix_rank: Tensor input, *, Tensor atol=None, Tensor rtol=None, bool hermitian=False, Tensor out=None
    | Tensor input, *, float atol=None, float rtol=None, bool hermitian=False, Tensor out=None
    | Tensor input, Tensor tol, bool hermitian=False, *, Tensor out=None | Tensor input, float tol, bool hermitian=False, *, Tensor out=None
linalg_multi_dot: Tensors tensors, *, Tensor out=None
linalg_norm: Tensor input, Number ord=None, ints1 dim=None, bool keepdim=False, *, dtype dtype=None, Tensor out=None
    | Tensor input, str ord, ints1 dim=None, bool keepdim=False, *, dtype dtype=None, Tensor out=None
linalg_vector_norm: Tensor input, Number ord=2, ints1 dim=None, bool keepdim=False, *, dtype dtype=None, Tensor out=None
linalg_qr: Tensor A, str mode="reduced", *, Tensors out=None
linalg_slogdet: Tensor A, *, Tensors out=None
linalg_solve: Tensor A, Tensor B, *, bool left=True, Tensor out=None
linalg_solve_ex: Tensor A, Tensor B, *, bool left=True, bool check_errors=False, Tensors out=None
linalg_solve_triangular: Tensor input, Tensor B, *, bool upper, bool left=True, bool unitriangular=False, Tensor out=None
linalg_svd: Tensor A, bool full_matrices=True, *, str driver=None, Tensors out=None
linalg_svdvals: Tensor A, *, str driver=None, Tensor out=None
linalg_tensorinv: Tensor input, int ind=2, *, Tensor out=None
linalg_tensorsolve: Tensor input, Tensor other, ints dims=None, *, Tensor out=None
linalg_vander: Tensor x, *, int N=None
fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft: Tensor input, int n=None, int dim=-1, str norm=None, *, Tensor out=None
fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2: Tensor input, ints1 s=None, ints1 dim=[-2, -1], str norm=None, *, Tensor out=None
fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn: Tensor input, ints1 s=None, ints1 dim=None, str norm=None, *, Tensor out=None
avg_pool2d: Tensor input, ints2 kernel_size, ints2 stride=[], ints2 padding=0, bool ceil_mode=False, bool count_include_pad=True, int divisor_override=None, *, Tensor
    out=None
avg_pool3d: Tensor input, ints3 kernel_size, ints3 stride=[], ints3 padding=0, bool ceil_mode=False, bool count_include_pad=True, int divisor_override=None, *, Tensor
    out=None
binomial: Tensor count, Tensor prob, Generator generator=None
celu: Tensor input, Number alpha=1.
rrelu: Tensor input, Number lower=0.125, Number upper=0.3333333333333333, bool training=False, Generator generator=None
xlogy: Tensor input, Tensor other, *, Tensor out=None | Number self, Tensor other, *, Tensor out=None | Tensor input, Number other, *, Tensor out=None
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
random_: *, Generator generator=None | int from, int? to, *, Generator generator=None | int to, *, Generator generator=None
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
bitwise_left_shift bitwise_left_shift_ bitwise_right_shift bitwise_right_shift_ xlogy xlogy_: Tensor other | Number other
cauchy_: float median=0.0, float sigma=1.0, *, Generator generator=None
fill_diagonal_: Number fill_value, bool wrap=False
float_power float_power_: Tensor exponent | Number exponent
gcd_ ldexp_ reshape_as: Tensor other
geometric_: float p, *, Generator generator=None
log_normal_: float mean=1.0, float std=2.0, *, Generator generator=None
new_empty_strided: ints size, ints stride, *, dtype dtype=None, layout layout=None, device device=None, bool pin_memory=None
polygamma_: int n
resize_: ints size, *, memory_format memory_format=None
resize_as_: Tensor the_template, *, memory_format memory_format=None
sparse_mask: Tensor mask
sum_to_size: ints size
contiguous: *, memory_format memory_format=contiguous_format
index_put index_put_: Tensors indices, Tensor values, bool accumulate=False
to_sparse_csr to_sparse_csc: int dense_dim=None
to_dense: dtype dtype=None, *, bool masked_grad=None
"""

# What the words for many parameters stand for.
SHORT = {"FACTORY": "Tensor out=None, LIKE",
         "LIKE": "dtype dtype=None, layout layout=None, device device=None, bool? pin_memory=False, bool? requires_grad=False"}
# Functions of ``nn.functional`` written in Python there, which hand all on by position.
BY_POSITION = frozenset("layer_norm leaky_relu elu hardtanh max_pool2d pad".split())
# Which take ``inplace`` there, too.
WITH_INPLACE = frozenset("silu mish hardswish hardsigmoid elu leaky_relu hardtanh".split())
# Where a number stands for a tensor.
NUMBERS = frozenset("add sub mul div true_divide floor_divide copy subtract multiply divide".split())
# Which have another form, an old one that is not shown.
OLD = frozenset("add sub addmm baddbmm addbmm addcdiv addcmul addmv addr".split())
# Functions of ``nn.functional`` that PyTorch writes in Python: what they ask their tensors for first, where another value gives an AttributeError.
ASKED = dict.fromkeys("""adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool2d adaptive_max_pool3d binary_cross_entropy
    binary_cross_entropy_with_logits huber_loss l1_loss mse_loss smooth_l1_loss max_unpool1d max_unpool2d max_unpool3d""".split(), "size")
ASKED |= dict.fromkeys("glu group_norm margin_ranking_loss interpolate tensordot stft".split(), "dim")
ASKED |= dict(softmax="softmax", log_softmax="log_softmax", normalize="norm")
