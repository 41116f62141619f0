"""The memory of CPU drivers' large buffers."""
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
