"""Who says that tensor cores compute rightly: a process that tries them, once per driver, dtype and, of attention, length of heads."""
import types

import numpy as np
import pytest

import clnn
from clnn.core import dtype as dt
from clnn.core.config import config
from clnn.ops import _attention_gpu, _attention_warpgroup, _gemm, _gemm_gpu, _gemm_tensor, _gemm_warpgroup, _proof
from clnn.runtime.device import default_device, list_devices

if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)


@pytest.fixture
def claims(monkeypatch, tmp_path):
    """A device that says it is NVIDIA's and has no verdict yet; its driver does not know the instruction."""
    device = default_device()
    if not device.is_cpu:
        pytest.skip("it may know the instruction")
    device.queue                                        # opened as what it is
    monkeypatch.setattr(device, "flavour", "nvidia")
    monkeypatch.setattr(device, "is_cpu", False)
    monkeypatch.setattr(config, "tensor_cores", "auto")
    monkeypatch.setattr(_gemm, "_plans", {})
    monkeypatch.setattr(_gemm_gpu, "_THIN", 0)
    monkeypatch.setattr(_gemm_tensor, "_known", {})
    monkeypatch.setattr(_proof, "cache_dir", lambda *parts: tmp_path)
    return device


def test_a_driver_without_the_instruction_computes_plainly(claims, monkeypatch):
    a = np.random.default_rng(0).standard_normal((64, 64)).astype("f")
    x = clnn.tensor(a).half()
    assert np.abs((x @ x.t()).float().numpy() - a @ a.T).max() < 0.2
    assert list(_gemm._plans.values())[-1].kernel.name == "matmul_gpu"
    assert _gemm_tensor._known[claims] == frozenset()

    def fail(*args):
        raise AssertionError("asked again")
    monkeypatch.setattr(_proof, "_ask", fail)
    _gemm_tensor._known.clear()
    assert _gemm_tensor.kinds(claims) == frozenset()        # what is on disk is not asked again


@pytest.mark.parametrize("printed, found", [('{"kind": "float16", "problem": ""}\nnoise\n{"kind": "bfloat16", "problem": "7 elements are wrong"}\n', {"float16"}),
                                            ("", set()), ("[]\nnull\n", set())], ids=["one is right", "crashed", "noise"])
def test_what_the_process_prints_decides(claims, monkeypatch, printed, found):
    from clnn.doctor import _tensor_cores
    monkeypatch.setattr(_proof.subprocess, "run", lambda *args, **kwargs: types.SimpleNamespace(stdout=printed))
    assert _gemm_tensor.kinds(claims) == found
    monkeypatch.setattr(claims, "compute_capability", (9, 0))
    report = [line for line in _tensor_cores(claims) if "four warps" not in line]
    assert ("float16" in report[0]) == bool(found) and len(report) == 1 + len(_gemm_tensor.WAYS) - len(found)


def test_a_process_that_cannot_start_or_hangs_is_no_error(claims, monkeypatch):
    for exc in (OSError("no process"), _proof.subprocess.TimeoutExpired("python", 1, b'{"kind": "float16", "problem": ""}\n')):
        def run(*args, exc=exc, **kwargs):
            raise exc
        monkeypatch.setattr(_proof.subprocess, "run", run)
        found = _proof._ask(claims, "_gemm_tensor", [way.name for way in _gemm_tensor.WAYS])
        assert set(found["kinds"]) == ({"float16"} if isinstance(exc, _proof.subprocess.TimeoutExpired) else set())


def test_attention_has_a_proof_of_its_own(claims, monkeypatch):
    """Products on tensor cores may be right where attention is not, and where they are not, nobody asks."""
    monkeypatch.setattr(_attention_gpu, "_known", {})
    said = ['{"kind": "float16", "problem": ""}\n{"kind": "bfloat16", "problem": ""}', '{"kind": "float16", "problem": ""}', ""]
    asked = []
    monkeypatch.setattr(_proof.subprocess, "run", lambda command, **_: asked.append(command[-1]) or types.SimpleNamespace(stdout=said[len(asked) - 1]))
    for _ in range(2):
        assert _attention_gpu.proved(claims, dt.float16) and not _attention_gpu.proved(claims, dt.bfloat16)
    assert len(asked) == 3 and all(f"_attention_gpu import main; main('{name}')" in text for name, text in zip(("float16", "bfloat16"), asked[1:]))
    for known in (_attention_gpu._known, _gemm_tensor._known):
        known.clear()
    monkeypatch.setattr(_gemm_tensor._proof, "verdict", lambda device, name, *_: {"kinds": []} if name == "_gemm_tensor" else pytest.fail("asked"))
    assert not _attention_gpu.proved(claims, dt.float16)


def test_attention_by_warpgroups_is_proved_for_each_length_of_heads(claims, monkeypatch):
    """What one proof asks is no matter of the others, and the proof of other kernels leaves it out."""
    monkeypatch.setattr(claims, "compute_capability", (9, 0))
    monkeypatch.setattr(_attention_warpgroup, "_known", {})
    asked = []
    said = types.SimpleNamespace(stdout='{"kind": "float16", "problem": "", "choice": [1, 0, 2]}')
    monkeypatch.setattr(_proof.subprocess, "run", lambda command, **_: asked.append(command[-1]) or said)

    def serves(T, E, EV):
        return _attention_warpgroup.serves(claims, T, 64, 64, E, EV)
    for _ in range(2):
        assert serves(dt.float16, 64, 64) and serves(dt.float16, 128, 64) and not serves(dt.bfloat16, 64, 64)
    assert len(asked) == 3 and all(f"main('{part} " in text for text, part in zip(asked, ("float16 64 64", "float16 128 64", "bfloat16 64 64")))
    tables = _attention_warpgroup.FORMS, _attention_warpgroup.QUERY, _attention_warpgroup.KEYS
    assert _attention_warpgroup.rows(claims, dt.float16, 64, 64) == [table[64][i] for table, i in zip(tables, (1, 0, 2))]
    monkeypatch.setattr(config, "tensor_cores", "trust")
    assert not serves(dt.float16, 128, 128) and len(asked) == 3


def test_the_proof_of_attention_by_warpgroups_takes_the_first_that_is_right(claims, monkeypatch):
    monkeypatch.setattr(claims, "compute_capability", (9, 0))
    monkeypatch.setattr(_attention_warpgroup, "_known", {})
    key, tried, said = (claims, "bfloat16", 64, 64), [], []
    problems = ["the result is wrong", "KernelBuildError: attention/warpgroup_keys", "the gradient of queries is wrong", "the gradient of values is wrong", ""]

    def check(*_):
        tried.append(_attention_warpgroup._known[key])
        if "Error" in problems[len(tried) - 1]:
            raise RuntimeError(problems[len(tried) - 1])
        return problems[len(tried) - 1]
    monkeypatch.setattr(_attention_warpgroup, "check", check)
    monkeypatch.setattr(_proof, "tell", lambda kinds, check, choice: said.extend((T.name, check(claims, T), choice(T)) for T in kinds))
    _attention_warpgroup.main("bfloat16 64 64 and the tables")
    assert tried == [(0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 2)] and said == [("bfloat16", "", (1, 1, 2))]
    tried.clear()
    problems[:] = ["the result is wrong"] * 3
    assert _attention_warpgroup._first_right(claims, dt.bfloat16, key) == "the result is wrong" and len(tried) == 3


def test_old_hardware_and_the_switch_are_not_asked(claims, monkeypatch):
    monkeypatch.setattr(_proof, "_ask", None)
    monkeypatch.setattr(claims, "compute_capability", (7, 5))
    assert _gemm_tensor.kinds(claims) == frozenset()
    monkeypatch.setattr(claims, "compute_capability", (9, 0))
    monkeypatch.setattr(config, "tensor_cores", "off")
    assert _gemm_tensor.kinds(claims) == frozenset()


def test_other_processors_are_not_asked_for_warpgroups(claims, monkeypatch):
    monkeypatch.setattr(_proof, "_ask", None)
    for capability in ((8, 0), (8, 9), (10, 0)):
        monkeypatch.setattr(claims, "compute_capability", capability)
        assert not _gemm_warpgroup.able(claims)
