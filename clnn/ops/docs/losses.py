"""Losses."""
from ..._tensor.explain import explain

explain("nll_loss", "", "clnn.nn.functional.nll_loss(clnn.tensor([[-0.5, -1.]]), clnn.tensor([1]))", "tensor(1.)")
explain("l1_loss", "Averaged, summed or as it is, by ``reduction``.",
        "clnn.nn.functional.l1_loss(clnn.tensor([1., 3.]), clnn.tensor([1., 1.]))", "tensor(1.)")
explain("smooth_l1_loss", 'Girshick, "Fast R-CNN", 2015.',
        "clnn.nn.functional.smooth_l1_loss(clnn.tensor([0.5, 3.]), clnn.tensor([0., 0.]))", "tensor(1.3125)")
explain("huber_loss", "Huber, 1964.",
        "clnn.nn.functional.huber_loss(clnn.tensor([0.5, 3.]), clnn.tensor([0., 0.]))", "tensor(1.3125)")
explain("binary_cross_entropy", "",
        "clnn.nn.functional.binary_cross_entropy(clnn.tensor([0.5, 0.5]), clnn.tensor([1., 0.]))", "tensor(0.6931)")
explain("binary_cross_entropy_with_logits", "",
        "clnn.nn.functional.binary_cross_entropy_with_logits(clnn.tensor([0., 0.]), clnn.tensor([1., 0.]))", "tensor(0.6931)")
explain("kl_div", "Kullback, Leibler, 1951.",
        'clnn.nn.functional.kl_div(clnn.tensor([[-0.7, -0.7]]), clnn.tensor([[0.5, 0.5]]), reduction="batchmean")', "tensor(0.0069)")
explain("poisson_nll_loss", "", "clnn.nn.functional.poisson_nll_loss(clnn.tensor([0., 0.]), clnn.tensor([1., 2.]))", "tensor(1.)")
explain("gaussian_nll_loss", "",
        "clnn.nn.functional.gaussian_nll_loss(clnn.tensor([1., 3.]), clnn.tensor([1., 1.]), clnn.tensor([1., 1.]))", "tensor(1.)")
explain("hinge_embedding_loss", "",
        "clnn.nn.functional.hinge_embedding_loss(clnn.tensor([0.5, 0.25]), clnn.tensor([1., -1.]))", "tensor(0.6250)")
explain("soft_margin_loss", "",
        "clnn.nn.functional.soft_margin_loss(clnn.tensor([0., 0.]), clnn.tensor([1., -1.]))", "tensor(0.6931)")
explain("margin_ranking_loss", "y is 1 where x1 should be the larger one, -1 where x2 should.",
        "clnn.nn.functional.margin_ranking_loss(clnn.tensor([1., 2.]), clnn.tensor([2., 1.]), clnn.tensor([1., 1.]))", "tensor(0.5000)")
explain("cosine_embedding_loss", "",
        "clnn.nn.functional.cosine_embedding_loss(clnn.tensor([[1., 0.]]), clnn.tensor([[0., 1.]]), clnn.tensor([1.]))", "tensor(1.)")
explain("multi_margin_loss", "The hinge loss of several classes (Crammer, Singer, 2001).",
        "clnn.nn.functional.multi_margin_loss(clnn.tensor([[0.5, 1.]]), clnn.tensor([1]))", "tensor(0.2500)")
explain("multilabel_margin_loss", "",
        "clnn.nn.functional.multilabel_margin_loss(clnn.tensor([[0.5, 1.]]), clnn.tensor([[1, -1]]))", "tensor(0.2500)")
explain("multilabel_soft_margin_loss", "",
        "clnn.nn.functional.multilabel_soft_margin_loss(clnn.tensor([[0., 0.]]), clnn.tensor([[1., 0.]]))", "tensor(0.6931)")
explain("triplet_margin_loss", "Balntas, Riba, Ponsa, Mikolajczyk, 2016.",
        "clnn.nn.functional.triplet_margin_loss(clnn.tensor([[0., 0.]]), clnn.tensor([[3., 4.]]), clnn.tensor([[0., 1.]]))", "tensor(5.0000)")
explain("triplet_margin_with_distance_loss", "",
        "clnn.nn.functional.triplet_margin_with_distance_loss(clnn.tensor([[0., 0.]]), clnn.tensor([[3., 4.]]), clnn.tensor([[0., 1.]]))", "tensor(5.0000)")
explain("ctc_loss", "",
        "clnn.nn.functional.ctc_loss(clnn.zeros(2, 1, 2).log_softmax(2), clnn.tensor([[1]]), clnn.tensor([2]), clnn.tensor([1]))", "tensor(0.2877)")
