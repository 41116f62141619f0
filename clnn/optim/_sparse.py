"""What steps with sparse gradients are made of: reading and adding to the rows that a gradient has."""


def add_rows(p, t, alpha=1.0):
    """`p += alpha * t` in place; of a sparse `t` touches its rows only."""
    if t.is_sparse:
        from clnn.sparse._operators import add_rows_
        add_rows_(p, t, alpha)
    else:
        p.add_(t, alpha=alpha)


def rows_at(p, t):
    """The values of `p` at the places of the sparse tensor `t`."""
    return p.detach().sparse_mask(t)._values()
