"""The memory of tensors: large buffers of CPU drivers, and small ones that go from one user to the next."""
import random
import sys

import numpy as np
import pytest

import clnn
from clnn.runtime import memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="huge pages are asked for on Linux")
def test_new_large_buffers_ask_for_huge_pages_once(monkeypatch):
    dev = clnn.get_default_device().physical
    if not dev.is_cpu:
        pytest.skip("the memory of CPU drivers")
    asked, dev_memory = [], dev.memory
    huge = dev_memory._huge or memory.HugePages(dev.queue)
    real = huge._madvise
    monkeypatch.setattr(dev_memory, "_huge", huge)
    monkeypatch.setattr(huge, "_madvise", lambda *what: asked.append((*what, real(*what))) or 0)
    memory.empty_cache(dev)
    for _ in range(2):
        big = dev.alloc(9 << 20)
        dev.alloc(1 << 20)
        dev.write(big, np.arange(9 << 18, dtype=np.int32))
        assert np.array_equal(np.frombuffer(dev.read(big, 9 << 20), np.int32), np.arange(9 << 18))
        del big
    (first, size, _, failed), = asked
    assert not failed and first % memory.HUGE_PAGE == 0 and size % memory.HUGE_PAGE == 0 and size >= 6 << 20


def test_small_buffers_between_two_users():
    """What a buffer held is never seen by another tensor, whichever of many sizes come and go; and what nobody uses counts as free."""
    draw = random.Random(0)
    clnn.synchronize()
    before, alive = clnn.memory_allocated(), {}
    for step in range(600):
        if len(alive) > 40 or alive and draw.random() < 0.4:
            key = draw.choice(list(alive))
            x, value = alive.pop(key)
            assert (x.numpy() == value).all() if draw.random() < 0.5 else x.sum().item() == value * x.numel()
            del x
        else:
            size = draw.choice((3, 64, 65, 1000, 4096, 16384, 20000, draw.randrange(1, 30000)))
            alive[step] = clnn.full((size,), 1.0).mul(step % 97).clone(), step % 97
    for x, value in alive.values():
        assert (x.numpy() == value).all()
    del x
    alive.clear()
    clnn.synchronize()
    assert clnn.memory_allocated() <= before
