"""Convolution, pooling, normalisation, attention, resampling and what else layers are made of."""
from ..._tensor.explain import explain

explain("convolution", "``out[n, o, p] = bias[o] + sum over c, k of weight[o, c, k] input[n, c, p stride - padding + k dilation]``.",
        "clnn.ops.conv.convolution(clnn.tensor([[[1., 2., 3.]]]), clnn.tensor([[[1., 1.]]]), None, (1,), (0,), (1,), 1)", "tensor([[[3., 5.]]])")
explain("conv_input_grad", "",
        "clnn.ops.conv.conv_input_grad(clnn.tensor([[[1., 2.]]]), clnn.tensor([[[1., 1.]]]), None, (1, 1, 3), (1,), (0,), (1,), 1)",
        "tensor([[[1., 3., 2.]]])")
explain("conv_weight_grad", "``grad`` is the gradient of the output, ``input`` that of the forward pass; the rest as for it.",
        "clnn.ops.conv.conv_weight_grad(clnn.tensor([[[1., 2.]]]), clnn.tensor([[[1., 2., 3.]]]), (1, 1, 2), (1,), (0,), (1,), 1)", "tensor([[[5., 8.]]])")
explain("conv1d", "",
        "clnn.nn.functional.conv1d(clnn.tensor([[[1., 2., 3.]]]), clnn.tensor([[[1., 1.]]]))", "tensor([[[3., 5.]]])")
explain("conv2d", "", "clnn.nn.functional.conv2d(clnn.ones(1, 1, 2, 2), clnn.ones(1, 1, 2, 2))", "tensor([[[[4.]]]])")
explain("conv3d", "", "clnn.nn.functional.conv3d(clnn.ones(1, 1, 2, 2, 2), clnn.ones(1, 1, 2, 2, 2)).item()", "8.0")
explain("conv_transpose1d", "",
        "clnn.nn.functional.conv_transpose1d(clnn.tensor([[[1., 2.]]]), clnn.tensor([[[1., 1.]]]))", "tensor([[[1., 3., 2.]]])")
explain("conv_transpose2d", "",
        "clnn.nn.functional.conv_transpose2d(clnn.ones(1, 1, 1, 1), clnn.ones(1, 1, 2, 2))", "tensor([[[[1., 1.],\n          [1., 1.]]]])")
explain("conv_transpose3d", "",
        "clnn.nn.functional.conv_transpose3d(clnn.ones(1, 1, 1, 1, 1), clnn.ones(1, 1, 1, 2, 2))", "tensor([[[[[1., 1.],\n           [1., 1.]]]]])")
explain("conv_tbc", "", "clnn.conv_tbc(clnn.ones(3, 1, 1), clnn.ones(2, 1, 1), clnn.zeros(1)).flatten()", "tensor([2., 2.])")
explain("max_pool1d", "", "clnn.nn.functional.max_pool1d(clnn.tensor([[1., 3., 2., 4.]]), 2)", "tensor([[3., 4.]])")
explain("max_pool2d", "", "clnn.nn.functional.max_pool2d(clnn.tensor([[[1., 3.], [2., 4.]]]), 2)", "tensor([[[4.]]])")
explain("max_pool3d", "", "clnn.nn.functional.max_pool3d(clnn.ones(1, 2, 2, 2), 2)", "tensor([[[[1.]]]])")
explain("max_pool1d_with_indices", "",
        "clnn.nn.functional.max_pool1d_with_indices(clnn.tensor([[1., 3., 2., 4.]]), 2)[1]", "tensor([[1, 3]])")
explain("max_pool2d_with_indices", "",
        "clnn.nn.functional.max_pool2d_with_indices(clnn.tensor([[[1., 3.], [2., 4.]]]), 2)[1]", "tensor([[[3]]])")
explain("max_pool3d_with_indices", "",
        "clnn.nn.functional.max_pool3d_with_indices(clnn.ones(1, 2, 2, 2), 2)[1]", "tensor([[[[0]]]])")
explain("avg_pool1d", "", "clnn.nn.functional.avg_pool1d(clnn.tensor([[1., 3., 2., 4.]]), 2)", "tensor([[2., 3.]])")
explain("avg_pool2d", "", "clnn.nn.functional.avg_pool2d(clnn.tensor([[[1., 3.], [2., 4.]]]), 2)", "tensor([[[2.5000]]])")
explain("avg_pool3d", "", "clnn.nn.functional.avg_pool3d(clnn.ones(1, 2, 2, 2), 2)", "tensor([[[[1.]]]])")
explain("adaptive_avg_pool1d", "",
        "clnn.nn.functional.adaptive_avg_pool1d(clnn.tensor([[1., 3., 2., 4.]]), 1)", "tensor([[2.5000]])")
explain("adaptive_avg_pool2d", "",
        "clnn.nn.functional.adaptive_avg_pool2d(clnn.tensor([[[1., 3.], [2., 4.]]]), 1)", "tensor([[[2.5000]]])")
explain("adaptive_avg_pool3d", "", "clnn.nn.functional.adaptive_avg_pool3d(clnn.ones(1, 2, 2, 2), 1)", "tensor([[[[1.]]]])")
explain("adaptive_max_pool1d", "", "clnn.nn.functional.adaptive_max_pool1d(clnn.tensor([[1., 3., 2., 4.]]), 1)", "tensor([[4.]])")
explain("adaptive_max_pool2d", "",
        "clnn.nn.functional.adaptive_max_pool2d(clnn.tensor([[[1., 3.], [2., 4.]]]), 1)", "tensor([[[4.]]])")
explain("adaptive_max_pool3d", "", "clnn.nn.functional.adaptive_max_pool3d(clnn.ones(1, 2, 2, 2), 1)", "tensor([[[[1.]]]])")
explain("adaptive_max_pool1d_with_indices", "",
        "clnn.nn.functional.adaptive_max_pool1d_with_indices(clnn.tensor([[1., 3., 2., 4.]]), 1)[1]", "tensor([[3]])")
explain("adaptive_max_pool2d_with_indices", "",
        "clnn.nn.functional.adaptive_max_pool2d_with_indices(clnn.tensor([[[1., 3.], [2., 4.]]]), 1)[1]", "tensor([[[3]]])")
explain("adaptive_max_pool3d_with_indices", "",
        "clnn.nn.functional.adaptive_max_pool3d_with_indices(clnn.ones(1, 2, 2, 2), 1)[1]", "tensor([[[[0]]]])")
explain("lp_pool1d", "", "clnn.nn.functional.lp_pool1d(clnn.tensor([[3., 4.]]), 2, 2)", "tensor([[5.]])")
explain("lp_pool2d", "", "clnn.nn.functional.lp_pool2d(clnn.tensor([[[3., 4.], [0., 0.]]]), 2, 2)", "tensor([[[5.]]])")
explain("lp_pool3d", "", "clnn.nn.functional.lp_pool3d(clnn.ones(1, 1, 2, 2), 2, (1, 2, 2))", "tensor([[[[2.]]]])")
explain("max_unpool1d", "",
        "clnn.nn.functional.max_unpool1d(clnn.tensor([[3., 4.]]), clnn.tensor([[1, 3]]), 2)", "tensor([[0., 3., 0., 4.]])")
explain("max_unpool2d", "",
        "clnn.nn.functional.max_unpool2d(clnn.tensor([[[4.]]]), clnn.tensor([[[3]]]), 2)", "tensor([[[0., 0.],\n         [0., 4.]]])")
explain("max_unpool3d", "",
        "clnn.nn.functional.max_unpool3d(clnn.tensor([[[[4.]]]]), clnn.tensor([[[[3]]]]), (1, 2, 2))", "tensor([[[[0., 0.],\n          [0., 4.]]]])")
explain("fractional_max_pool2d", "",
        "clnn.nn.functional.fractional_max_pool2d(clnn.ones(1, 3, 3), 2, output_size=2)", "tensor([[[1., 1.],\n         [1., 1.]]])")
explain("fractional_max_pool2d_with_indices", "",
        "clnn.nn.functional.fractional_max_pool2d_with_indices(clnn.ones(1, 3, 3), 2, output_size=2)[0]", "tensor([[[1., 1.],\n         [1., 1.]]])")
explain("fractional_max_pool3d", "",
        "clnn.nn.functional.fractional_max_pool3d(clnn.ones(1, 4, 4, 4), 2, output_size=2).shape", "clnn.Size([1, 2, 2, 2])")
explain("fractional_max_pool3d_with_indices", "",
        "clnn.nn.functional.fractional_max_pool3d_with_indices(clnn.ones(1, 4, 4, 4), 2, output_size=2)[0].shape", "clnn.Size([1, 2, 2, 2])")
explain("layer_norm", "", "clnn.nn.functional.layer_norm(clnn.tensor([[1., 3.]]), (2,))", "tensor([[-1.0000,  1.0000]])")
explain("rms_norm", "", "clnn.nn.functional.rms_norm(clnn.tensor([[1., 1.]]), (2,))", "tensor([[1., 1.]])")
explain("batch_norm", "Ioffe, Szegedy, 2015.",
        "clnn.nn.functional.batch_norm(clnn.tensor([[1.], [3.]]), None, None, training=True)", "tensor([[-1.0000],\n        [ 1.0000]])")
explain("group_norm", "", "clnn.nn.functional.group_norm(clnn.tensor([[1., 3.]]), 1)", "tensor([[-1.0000,  1.0000]])")
explain("instance_norm", "", "clnn.nn.functional.instance_norm(clnn.tensor([[[1., 3.]]]))", "tensor([[[-1.0000,  1.0000]]])")
explain("local_response_norm", "Krizhevsky, Sutskever, Hinton, 2012.",
        "clnn.nn.functional.local_response_norm(clnn.ones(1, 1, 2), 1, alpha=1.)", "tensor([[[0.5946, 0.5946]]])")
explain("normalize", "Rows of length 1 in the p-norm; what is shorter than ``eps`` stays shorter.",
        "clnn.nn.functional.normalize(clnn.tensor([[3., 4.]]))", "tensor([[0.6000, 0.8000]])")
explain("scaled_dot_product_attention", "Vaswani et al., 2017; in tiles with a running softmax as by Dao et al., 2022.",
        "clnn.nn.functional.scaled_dot_product_attention(clnn.ones(1, 1, 2), clnn.ones(1, 3, 2), clnn.ones(1, 3, 2))", "tensor([[[1., 1.]]])")
explain("multi_head_attention_forward", 'Vaswani et al., "Attention is all you need", 2017.',
        "q, w, b = clnn.ones(1, 1, 2), clnn.ones(6, 2), clnn.zeros(6)\n"
        "clnn.nn.functional.multi_head_attention_forward(q, q, q, 2, 1, w, b, None, None, False, 0., clnn.eye(2), clnn.zeros(2))[0]",
        "tensor([[[2., 2.]]])")
explain("embedding_bag", "",
        'clnn.nn.functional.embedding_bag(clnn.tensor([[0, 1]]), clnn.tensor([[1., 2.], [3., 4.]]), mode="sum")', "tensor([[4., 6.]])")
explain("upsample", "Its arguments are the same.",
        "clnn.nn.functional.upsample(clnn.tensor([[[1., 2.]]]), scale_factor=2)", "tensor([[[1., 1., 2., 2.]]])")
explain("upsample_nearest", "",
        "clnn.nn.functional.upsample_nearest(clnn.tensor([[[1., 2.]]]), scale_factor=2)", "tensor([[[1., 1., 2., 2.]]])")
explain("upsample_bilinear", "",
        "clnn.nn.functional.upsample_bilinear(clnn.tensor([[[[1., 2.]]]]), size=(1, 3))", "tensor([[[[1.0000, 1.5000, 2.0000]]]])")
explain("grid_sample", "Jaderberg, Simonyan, Zisserman, Kavukcuoglu, 2015.",
        "clnn.nn.functional.grid_sample(clnn.tensor([[[[1., 3.]]]]), clnn.zeros(1, 1, 1, 2), align_corners=False)", "tensor([[[[2.]]]])")
explain("affine_grid", "Jaderberg, Simonyan, Zisserman, Kavukcuoglu, 2015.",
        "clnn.nn.functional.affine_grid(clnn.tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 1, 2), align_corners=True)",
        "tensor([[[[-1.,  0.],\n          [ 1.,  0.]]]])")
explain("fold", "", "clnn.nn.functional.fold(clnn.ones(1, 2, 2), (1, 3), (1, 2))", "tensor([[[[1., 2., 1.]]]])")
explain("pixel_shuffle", "Shi et al., 2016.",
        "clnn.nn.functional.pixel_shuffle(clnn.arange(4.).view(4, 1, 1), 2)", "tensor([[[0., 1.],\n         [2., 3.]]])")
explain("pixel_unshuffle", "",
        "clnn.nn.functional.pixel_unshuffle(clnn.arange(4.).view(1, 2, 2), 2).flatten()", "tensor([0., 1., 2., 3.])")
explain("channel_shuffle", "Zhang, Zhou, Lin, Sun, 2018.",
        "clnn.nn.functional.channel_shuffle(clnn.arange(4.).view(1, 4, 1), 2).flatten()", "tensor([0., 2., 1., 3.])")
explain("bernoulli", "", "clnn.bernoulli(clnn.tensor([0., 1.]))", "tensor([0., 1.])")
explain("multinomial", "", "clnn.multinomial(clnn.tensor([0., 1.]), 1)", "tensor([1])")
explain("poisson", "", "clnn.poisson(clnn.tensor([0., 0.]))", "tensor([0., 0.])")
explain("binomial", "", "clnn.binomial(clnn.tensor([3., 5.]), clnn.tensor([0., 1.]))", "tensor([0., 5.])")
