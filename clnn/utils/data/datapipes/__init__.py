"""Datasets made of small steps: ``IterableWrapper(range(6)).map(f).batch(2)`` (PyTorch's `torch.utils.data.datapipes`)."""
