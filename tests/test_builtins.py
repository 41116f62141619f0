"""Declarations of built-in functions that stand in for PoCL's long header, and names in texts of several sources."""
import numpy as np
import pytest

from clnn.core.errors import KernelBuildError
from clnn.runtime import assemble, builtins, program
from clnn.runtime.device import default_device, list_devices
from clnn.runtime.launch import launch

if not list_devices():
    pytest.skip("no OpenCL device", allow_module_level=True)

CONVERSIONS = [f"convert_{t}{n}{s}" for t in ("char", "uint", "long", "float") for n in ("", "16") for s in ("", "_rte")] + ["convert_uchar4_sat_rtz"]
MEMORY = ["vload4", "vstore16", "vload_half", "vload_half8", "vloada_half16", "vstore_half", "vstore_half16_rte", "vstorea_half4_rtn"]
ATOMICS = ["atomic_add", "atomic_inc", "atomic_cmpxchg", "atomic_xchg"]
NAMES = [*builtins._GENERIC, *builtins._PLAIN, *CONVERSIONS, *MEMORY, *ATOMICS]


@pytest.fixture
def dev():
    return default_device()


@pytest.fixture
def pocl(dev):
    if dev.flavour != "pocl" or dev.has_fp16:
        pytest.skip("other drivers do not read the header for each program")
    return dev


def kernel(body):
    return "__kernel void k(__global float* x, __global uint* n) { %s }" % body


def test_each_agrees_with_the_header_of_the_driver(dev):
    """Overloads that differ from a declaration only in what they return are faults."""
    for name in NAMES:
        assert builtins._declared(name), name
    program.Program(dev, builtins.declarations(" ".join(NAMES)) + kernel("x[0] = fma(x[0], 2.0f, 1.0f);"), "declarations").kernel_object("k")
    wrong = builtins.declarations("isnan").replace(" int isnan", " long isnan")
    with pytest.raises(KernelBuildError):
        program.Program(dev, wrong + kernel(""), "declarations").kernel_object("k")


def test_a_declared_function_needs_no_header(pocl, monkeypatch):
    seen = builds(monkeypatch)
    program._compile(pocl, kernel("x[get_global_id(0)] = fmax(vload4(0, x).y, convert_float(mul_hi(n[0], 3u))); atomic_add(n, 1u);"))
    assert pocl.declares_builtins and [builtins.OPTION in options for options in seen] == [True]


def test_others_are_built_with_the_header(pocl, monkeypatch):
    pocl.declares_builtins, seen = True, builds(monkeypatch)
    program._compile(pocl, kernel("x[0] = dot(vload4(0, x), vload4(1, x));"))
    assert pocl.declares_builtins and [builtins.OPTION in options for options in seen] == [True, False]


def test_a_driver_that_refuses_is_asked_once(pocl, monkeypatch):
    monkeypatch.setattr(pocl, "declares_builtins", None)
    monkeypatch.setattr(builtins, "declarations", lambda source: "#error\n")
    seen = builds(monkeypatch)
    for value in (1, 2):
        program._compile(pocl, kernel(f"x[0] = sqrt({value}.0f);"))
    assert pocl.declares_builtins is False and [builtins.OPTION in options for options in seen] == [True, False, False]


def test_a_function_that_elsewhere_is_a_macro_shares_a_text(dev):
    """Kernels with a function of one name, which for other drivers is a macro, are built together."""
    sources = [f"#if {on}\nfloat twice(float v) {{ return v * {on}; }}\n#else\n#define twice(v) (v + {on})\n#endif\n" + kernel("x[0] = twice(x[0]);")
               for on in (2, 0, 3)]
    text, tables = assemble.combine(sources, dev)
    shared = program.Program(dev, text, "together")
    assert [shared.kernel_object(table["k"]).function_name for table in tables] == [table["k"] for table in tables]
    x = dev.alloc(4)
    for table, given, want in zip(tables, (5, 7, 10), (10, 7, 30)):
        dev.write(x, np.float32([given]))
        launch(dev, program.Kernel(shared, table["k"]), (1,), (1,), x, x)
        assert dev.read(x, 4).view(np.float32)[0] == want


def builds(monkeypatch):
    """The options of each build from now on."""
    import pyopencl as cl
    seen, build = [], cl.Program.build

    def record(self, options, **kwargs):
        seen.append(options)
        return build(self, options, **kwargs)
    monkeypatch.setattr(cl.Program, "build", record)
    return seen
