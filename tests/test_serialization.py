"""clnn.save and clnn.load: PyTorch's format both ways, safetensors, and files that must be refused."""

import collections
import copy
import datetime
import errno
import io
import json
import os
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest

import clnn
from clnn import serialization
from clnn.serialization import SerializationError

torch = pytest.importorskip("torch")
DTYPES = ["float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool"]


def roundtrip(obj):
    file = io.BytesIO()
    clnn.save(obj, file)
    file.seek(0)
    return clnn.load(file)


def saved_by_torch(obj, **kw):
    file = io.BytesIO()
    torch.save(obj, file, **kw)
    file.seek(0)
    return file


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_both_ways(name):
    values = [[0.0, 1.0], [2.5, -3.0]] if "float" in name else [[0, 1], [1, 0]]
    ours, theirs = clnn.tensor(values, dtype=getattr(clnn, name)), torch.tensor(values, dtype=getattr(torch, name))
    file = io.BytesIO()
    clnn.save({"t": ours}, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)["t"]
    assert read.dtype is theirs.dtype and torch.equal(read, theirs)
    back = clnn.load(saved_by_torch({"t": theirs}))["t"]
    assert back.dtype is ours.dtype and back.tolist() == ours.tolist()


def test_containers_both_ways():
    shared = [1, 2]
    obj = collections.OrderedDict(
        none=None, numbers=(1, -5, 300, 1 << 31, 1 << 70, -(1 << 40), 2.5, True, False), text="gr\u00fc\u00df", data=b"a\xff", array=bytearray(b"q"),
        z=1 + 2j, s={1, 2}, counter=collections.Counter("aab"), nested={"a": [{"b": ()}]}, shared=shared, again=shared, many=list(range(600)))
    obj["dd"] = [f"key{i}" for i in range(300)]
    file = io.BytesIO()
    clnn.save(obj, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)
    assert read == obj and read["shared"] is read["again"]
    file.seek(0)
    mine = clnn.load(file)
    assert mine == obj and mine["shared"] is mine["again"] and type(mine) is collections.OrderedDict
    assert clnn.load(saved_by_torch(obj)) == obj
    assert roundtrip(frozenset([1])) == frozenset([1]) and roundtrip(collections.defaultdict(list, a=[1])) == {"a": [1]}
    loop = []
    loop.append(loop)
    back = roundtrip(loop)
    assert back[0] is back


def test_clnn_types_both_ways():
    obj = {"size": clnn.Size([2, 3]), "dtype": clnn.float16, "device": clnn.device("cpu"), "p": clnn.nn.Parameter(clnn.ones(2))}
    file = io.BytesIO()
    clnn.save(obj, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)
    assert read["size"] == torch.Size([2, 3]) and read["dtype"] is torch.float16 and read["device"] == torch.device("cpu")
    assert isinstance(read["p"], torch.nn.Parameter) and read["p"].requires_grad
    theirs = {"size": torch.Size([2, 3]), "dtype": torch.float16, "device": torch.device("cpu"), "p": torch.nn.Parameter(torch.ones(2))}
    for back in (clnn.load(saved_by_torch(theirs)), roundtrip(obj)):
        assert back["size"] == (2, 3) and isinstance(back["size"], clnn.Size) and back["dtype"] is clnn.float16
        assert back["device"] == clnn.device("cpu")
        assert isinstance(back["p"], clnn.nn.Parameter) and back["p"].requires_grad and back["p"].tolist() == [1.0, 1.0]


def test_views_strides_and_sharing():
    base = clnn.arange(12.0).reshape(3, 4)
    obj = {"base": base, "t": base.t(), "part": base[1:, ::2], "scalar": clnn.tensor(3.5), "empty": clnn.zeros(0, 3), "row": base[2]}
    back = roundtrip(obj)
    assert back["t"].stride() == (1, 4) and back["part"].stride() == (4, 2) and back["part"].storage_offset() == 4
    for key, t in obj.items():
        assert back[key].tolist() == t.tolist() and tuple(back[key].shape) == tuple(t.shape)
    back["base"].fill_(7.0)
    assert back["part"].tolist() == [[7.0, 7.0]] * 2 and back["row"].tolist() == [7.0] * 4
    file = io.BytesIO()
    clnn.save(obj, file)
    file.seek(0)
    read = torch.load(file, weights_only=True)
    read["base"].zero_()
    assert read["part"].abs().sum() == 0 and len([n for n in zipfile.ZipFile(file).namelist() if "/data/" in n]) == 3
    tb = torch.arange(12.0).reshape(3, 4)
    mine = clnn.load(saved_by_torch({"b": tb, "p": tb[1:, ::2].t()}))
    mine["b"].zero_()
    assert mine["p"].tolist() == [[0.0, 0.0], [0.0, 0.0]] and mine["p"].stride() == (2, 4)
    leaf = roundtrip(clnn.ones(2, requires_grad=True))
    assert leaf.requires_grad and leaf.is_leaf


def test_training_state_both_ways(tmp_path):
    model = clnn.nn.Sequential(clnn.nn.Linear(3, 4), clnn.nn.BatchNorm1d(4))
    opt = clnn.optim.Adam(model.parameters())
    model(clnn.ones(2, 3)).sum().backward()
    opt.step()
    path = tmp_path / "checkpoint.pt"
    clnn.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": 3}, path)
    read = torch.load(path, weights_only=True)
    ref = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    ref.load_state_dict(read["model"])
    ref_opt = torch.optim.Adam(ref.parameters())
    ref_opt.load_state_dict(read["opt"])
    ref(torch.ones(2, 3)).sum().backward()
    ref_opt.step()
    torch.save({"model": ref.state_dict(), "opt": ref_opt.state_dict()}, path)
    back = clnn.load(path)
    assert back["model"]._metadata["1"]["version"] == 2
    model.load_state_dict(back["model"])
    opt.load_state_dict(back["opt"])
    for p, q in zip(model.parameters(), ref.parameters()):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())
    assert float(opt.state_dict()["state"][0]["step"]) == 2.0


def test_tensors_with_attributes_and_buffers():
    p, t = torch.nn.Parameter(torch.ones(2)), torch.ones(3)
    p.note = t.note = {"of": ["both", 1, torch.ones(1)]}
    back = clnn.load(saved_by_torch([p, t, torch.nn.Buffer(torch.ones(1))]))
    assert isinstance(back[0], clnn.nn.Parameter) and [x.numel() for x in back] == [2, 3, 1]
    assert back[0].note["of"][:2] == back[1].note["of"][:2] == ["both", 1] and back[1].note["of"][2].tolist() == [1.0]
    back[1].left, back[1].note["of"][2].requires_grad = len, True       # functions are not stored
    for file in (io.BytesIO(), "old"):
        how, file = dict(_use_new_zipfile_serialization=file != "old"), io.BytesIO()
        clnn.save([*back, (back[1] * 1).requires_grad_()], file, **how)
        for lib in (torch, clnn):
            file.seek(0)
            again = lib.load(file)
            assert again[0].note["of"][:2] == again[1].note["of"][:2] == ["both", 1] and vars(again[1]).keys() == {"note"} and not vars(again[3])
            assert again[1].note["of"][2].requires_grad and isinstance(again[0], lib.nn.Parameter) and again[1].tolist() == [1.0] * 3


def test_sharded_torch_checkpoint(tmp_path):
    for i in (1, 2):
        torch.save({f"w{i}": torch.full((2,), float(i))}, tmp_path / f"pytorch_model-{i}.bin")
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {f"w{i}": f"pytorch_model-{i}.bin" for i in (1, 2)}}))
    assert {k: v.tolist() for k, v in clnn.load(index).items()} == {"w1": [1.0, 1.0], "w2": [2.0, 2.0]}


def test_map_location():
    file = saved_by_torch(torch.ones(2))
    for where in ("cpu", clnn.device("cpu"), {"cpu": "cpu"}, lambda storage, loc: storage, lambda storage, loc: "cpu"):
        file.seek(0)
        assert clnn.load(file, map_location=where, weights_only=True).tolist() == [1.0, 1.0]


def test_big_endian_file():
    file = saved_by_torch(torch.tensor([1.0, 2.0]))
    swapped = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(swapped, "w") as new:
        for n in old.namelist():
            data = old.read(n)
            data = b"big" if n.endswith("byteorder") else np.frombuffer(data, ">f4").astype("<f4").tobytes() if "/data/" in n else data
            new.writestr(n, data)
    swapped.seek(0)
    assert clnn.load(swapped).tolist() == [1.0, 2.0]


class Options:
    """What a program may keep beside its tensors."""

    class Steps(list):
        pass

    def __init__(self):
        self.steps, self.weight, self.me = Options.Steps([1, 2]), clnn.ones(2), self

    def state_dict(self):                           # a name of its own, no optimizer's
        return {"steps": self.steps}


def test_objects_of_own_classes_are_written_for_pytorch():
    file = io.BytesIO()
    with pytest.warns(UserWarning, match="Options; clnn.load.*refuse"):
        clnn.save({"options": Options(), "wait": datetime.timedelta(3), "names": collections.deque("ab")}, file)
    file.seek(0)
    got = torch.load(file, weights_only=False)
    options = got["options"]
    assert type(options) is Options and options.me is options and type(options.steps) is Options.Steps and options.steps == [1, 2]
    assert options.weight.tolist() == [1, 1] and got["wait"] == datetime.timedelta(3) and got["names"] == collections.deque("ab")
    file.seek(0)
    with pytest.raises(SerializationError, match="Options"):
        clnn.load(file, weights_only=False)
    vouched = [Options, Options.Steps, datetime.timedelta, (collections.deque, "collections.deque")]
    with clnn.serialization.safe_globals(vouched):
        file.seek(0)
        got = clnn.load(file)
        options = got["options"]
        assert type(options) is Options and options.me is options and type(options.steps) is Options.Steps and options.steps == [1, 2]
        assert options.weight.tolist() == [1, 1] and got["wait"] == datetime.timedelta(3) and got["names"] == collections.deque("ab")
        assert clnn.serialization.get_safe_globals()[0] is Options
    file.seek(0)
    with pytest.raises(SerializationError, match="add_safe_globals"):
        clnn.load(file)


def test_objects_that_cannot_be_saved():
    for obj, hint in (({"m": [clnn.amp.GradScaler("cpu")]}, r"\['m'\]\[0\] .*state_dict"), ({"f": lambda: 0}, r"\['f'\]"),
                      (np.array(["a"]), "numpy.ndarray"), ({"x": np.complex64(1)}, "complex64")):
        with pytest.raises(SerializationError, match=hint):
            clnn.save(obj, io.BytesIO())
    assert roundtrip({"x": np.float64(1.5)}) == {"x": 1.5}
    t = clnn.ones(4)
    with pytest.raises(SerializationError, match="same memory"):
        clnn.save([t, t.view(clnn.int32)], io.BytesIO())


ARRAYS = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6).reshape(2, 3)), np.array([True, False]), np.zeros((0, 2), "float16"),
          np.array(3, "uint8"), np.arange(4, dtype=">i2"), np.arange(9.0)[::2], np.float32(1.5), np.int64(-7), np.bool_(True)]


def test_numpy_values():
    """Arrays and scalars go through both libraries' files and keep their dtype."""
    objects = {"list": ARRAYS, "twice": [ARRAYS[0], ARRAYS[0]]}
    file = io.BytesIO()
    clnn.save(objects, file)
    for read in (roundtrip(objects), clnn.load(saved_by_torch(objects)), torch.load(io.BytesIO(file.getvalue()), weights_only=False)):
        for a, b in zip(objects["list"], read["list"]):
            assert type(a) is type(b) and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and a.shape == b.shape
            np.testing.assert_array_equal(a, b)
        assert read["twice"][0] is read["twice"][1]


class Bomb:
    def __reduce__(self):
        return (os.system, ("echo hacked > hacked.txt",))


def zip_with(pickled, extra=()):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("a/data.pkl", pickled)
        z.writestr("a/version", "3\n")
        for name, data in extra:
            z.writestr("a/" + name, data)
    file.seek(0)
    return file


HOSTILE = {
    "os.system": pickle.dumps(Bomb(), 2),
    "eval": b"\x80\x02c__builtin__\neval\nX\x03\x00\x00\x001+1\x85R.",
    "getattr": b"\x80\x02c__builtin__\ngetattr\ncollections\nOrderedDict\nX\x05\x00\x00\x00clear\x86R.",
    "dotted": b"\x80\x04\x8c\x05torch\x8c\x0fSize.__init__.x\x93.",
    "call a value": b"\x80\x02X\x01\x00\x00\x00a)R.",
    "build on a dtype": b"\x80\x02ctorch\nfloat32\n}X\x01\x00\x00\x00aK\x01sb.",
    "build on a list": b"\x80\x02]}X\x01\x00\x00\x00aK\x01sb.",
    "build shadows a method": b"\x80\x02ccollections\nOrderedDict\n)R}X\x05\x00\x00\x00itemsK\x01sb.",
    "instance opcode": b"(S'echo'\nios\nsystem\n.",
    "extension": b"\x80\x02\x82\x01.",
    "pop from nothing": b"\x80\x020.",
    "memo unknown": b"\x80\x02h\x07.",
    "no stop": b"\x80\x02K\x01",
    "unhashable key": b"\x80\x02}]K\x01s.",
    "wrong pid": b"\x80\x02K\x01Q.",
    "odd setitems": b"\x80\x02}(K\x01u.",
    "numpy object": b"\x80\x02cnumpy\ndtype\nX\x01\x00\x00\x00O\x89\x88\x87R.",
    "numpy array of objects": pickle.dumps(np.array([len], object), 2),
    "numpy array too short": pickle.dumps(np.arange(4), 2).replace(b"K\x04\x85", b"K\x05\x85"),
    "numpy array filled twice": pickle.dumps([a := np.arange(3), a], 2)[:-2] + b"h\x00b.",
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pickles_are_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SerializationError):
        clnn.load(zip_with(HOSTILE[name]), weights_only=False)
    assert not os.path.exists("hacked.txt")


def tensor_pickle(offset=0, size=(2,), stride=(1,), numel=2, key="0"):
    """A tensor's pickle with freely chosen geometry."""
    out = io.BytesIO()
    out.write(b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((")
    for text in ("storage", None, key, "cpu"):
        out.write(b"ctorch\nFloatStorage\n" if text is None else b"X" + struct.pack("<I", len(text)) + text.encode())
    out.write(b"J" + struct.pack("<i", numel) + b"tQJ" + struct.pack("<i", offset))
    for numbers in (size, stride):
        out.write(b"(" + b"".join(b"J" + struct.pack("<i", n) for n in numbers) + b"t")
    out.write(b"\x89ccollections\nOrderedDict\n)RtR.")
    return out.getvalue()


def test_tensor_geometry_is_checked():
    data = np.array([1.0, 2.0], np.float32).tobytes()
    assert clnn.load(zip_with(tensor_pickle(), [("data/0", data)])).tolist() == [1.0, 2.0]
    for bad in (dict(size=(3,)), dict(offset=1), dict(offset=-1), dict(size=(-2,)), dict(stride=(9,)), dict(stride=()), dict(numel=3),
                dict(numel=-1), dict(key="1"), dict(key="../data.pkl")):
        with pytest.raises(SerializationError):
            clnn.load(zip_with(tensor_pickle(**bad), [("data/0", data)]))


def _mixed(lib):
    base = lib.arange(12.0).reshape(3, 4)
    return {"view": base[1:].t(), "base": base, "half": lib.ones(3).to(lib.bfloat16), "none": lib.zeros(0, 2), "n": [1, 2.5, "x", None],
            "weight": lib.nn.Parameter(lib.ones(2)), "flags": lib.tensor([True, False]), "sparse": lib.eye(2).to_sparse()}


def test_the_format_before_1_6_both_ways(tmp_path):
    theirs, mine = clnn.load(saved_by_torch(_mixed(torch), _use_new_zipfile_serialization=False)), tmp_path / "old.pt"
    clnn.save(_mixed(clnn), mine, _use_new_zipfile_serialization=False)
    for got in (theirs, clnn.load(mine), torch.load(mine)):
        want = _mixed(torch)
        assert list(got) == list(want) and got["n"] == want["n"] and type(got["weight"]).__name__ == "Parameter" and got["weight"].requires_grad
        for k, v in want.items():
            if k not in ("n", "sparse"):
                assert (got[k].tolist(), tuple(got[k].stride()), str(got[k].dtype).split(".")[1]) == (v.tolist(), v.stride(), str(v.dtype).split(".")[1]), k
        assert got["sparse"].to_dense().tolist() == [[1, 0], [0, 1]]
        with (torch if got["base"].__class__ is torch.Tensor else clnn).no_grad():
            got["base"][1, 0] = 99
        assert got["view"][0, 0] == 99                      # they share memory again
    whole = mine.read_bytes()
    for cut in (20, 100, len(whole) // 2, len(whole) - 1):
        with pytest.raises(SerializationError):
            clnn.load(io.BytesIO(whole[:cut]))


def test_other_formats_and_damage_are_named(tmp_path):
    with pytest.raises(SerializationError, match="is a pickle"):
        clnn.load(io.BytesIO(pickle.dumps({"a": 1})))
    with pytest.raises(EOFError, match="is empty"):
        clnn.load(io.BytesIO())
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as t:
        t.addfile(tarfile.TarInfo("storages"))
    tar.seek(0)
    with pytest.raises(SerializationError, match="tar"):
        clnn.load(tar)
    whole = saved_by_torch({"a": torch.arange(100.0)}).getvalue()
    for cut in (0, 3, 40, len(whole) // 2, len(whole) - 5):
        with pytest.raises(SerializationError):
            clnn.load(io.BytesIO(whole[:cut]))
    flipped = bytearray(whole)
    at = whole.index(np.arange(100.0, dtype=np.float32).tobytes()) + 40
    flipped[at] ^= 0xFF
    with pytest.raises(SerializationError, match="damaged"):
        clnn.load(io.BytesIO(bytes(flipped)))
    with pytest.raises(SerializationError, match="state_dict"):
        clnn.load(saved_by_torch(torch.nn.Linear(1, 1)))
    with pytest.raises(SerializationError, match="float8_e5m2"):
        clnn.load(saved_by_torch(torch.zeros(2).to(torch.float8_e5m2)))
    script = tmp_path / "script.pt"
    with zipfile.ZipFile(script, "w") as z:
        z.writestr("s/data.pkl", b"")
        z.writestr("s/constants.pkl", b"")
    with pytest.raises(SerializationError, match="TorchScript"):
        clnn.load(script)
    with pytest.raises(FileNotFoundError):
        clnn.load(tmp_path / "missing.pt")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("a/data.pkl", b"\x80\x02N." + b"\0" * 1000)
    packed.seek(0)
    with pytest.raises(SerializationError, match="compressed"):
        clnn.load(packed)
    assert issubclass(SerializationError, RuntimeError)


def test_writes_are_atomic(tmp_path, monkeypatch):
    path = tmp_path / "m.pt"
    clnn.save({"v": 1}, path)
    os.chmod(path, 0o640)
    with pytest.raises(SerializationError):
        clnn.save({"v": lambda: 0}, path)
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError("disk gone")))
    with pytest.raises(OSError, match="disk gone"):
        clnn.save({"v": 2}, path)
    monkeypatch.setattr(os, "fsync", lambda *a: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(OSError, match=r"No space left on device: '.*m\.pt'"):
        clnn.save({"v": 2}, path)
    monkeypatch.undo()
    assert clnn.load(path) == {"v": 1} and os.listdir(tmp_path) == ["m.pt"]
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    clnn.save({"v": 3}, str(link))
    assert link.is_symlink() and clnn.load(path) == {"v": 3} and path.stat().st_mode & 0o777 == 0o640
    a, b = tmp_path / "x.pt", tmp_path / "y" / "x.pt"
    b.parent.mkdir()
    clnn.save({"t": clnn.ones(3)}, a)
    clnn.save({"t": clnn.ones(3)}, b)
    assert a.read_bytes() == b.read_bytes()


def test_missing_folder(tmp_path):
    with pytest.raises(SerializationError, match="does not exist"):
        clnn.save(1, tmp_path / "none" / "m.pt")


def test_overlapping_records_are_refused():
    whole = bytearray(saved_by_torch([torch.zeros(500), torch.ones(500)]).getvalue())
    for field in (b"PK\x01\x02", b"PK\x03\x04"):  # claim that every record is longer than the file
        at = whole.find(field)
        while at >= 0:
            sizes = at + (20 if field[2] == 1 else 18)
            whole[sizes:sizes + 8] = struct.pack("<II", 3000, 3000)
            at = whole.find(field, at + 4)
    with pytest.raises(SerializationError):
        clnn.load(io.BytesIO(bytes(whole)))


def test_storages_are_aligned(tmp_path):
    path = tmp_path / "m.pt"
    clnn.save([clnn.ones(3), clnn.ones(5)], path)
    raw = path.read_bytes()
    assert raw.index(np.ones(3, np.float32).tobytes()) % 64 == 0


# ---- safetensors ----------------------------------------------------------------------------------------------------------------

def some_tensors():
    return {"w": clnn.arange(6.0).reshape(2, 3), "t": clnn.arange(6.0).reshape(2, 3).t(), "h": clnn.ones(3, dtype=clnn.bfloat16),
            "i": clnn.arange(3), "b": clnn.tensor([True, False]), "s": clnn.tensor(2.5), "e": clnn.zeros(0, 2)}


def assert_equal_dicts(a, b):
    assert a.keys() == b.keys()
    for k in a:
        assert a[k].dtype is b[k].dtype and a[k].tolist() == b[k].tolist() and tuple(a[k].shape) == tuple(b[k].shape)


def test_safetensors_roundtrip(tmp_path):
    path = tmp_path / "m.safetensors"
    clnn.save(some_tensors(), path)
    assert_equal_dicts(clnn.load(path), some_tensors())
    serialization.save_safetensors(some_tensors(), path, metadata={"epoch": "3"})
    got, metadata = serialization.load_safetensors(path, return_metadata=True)
    assert metadata == {"epoch": "3"}
    assert_equal_dicts(got, some_tensors())
    os.rename(path, tmp_path / "m.bin")
    assert_equal_dicts(clnn.load(tmp_path / "m.bin", map_location=lambda storage, loc: storage), some_tensors())
    file = io.BytesIO()
    serialization.save_safetensors({"a": clnn.ones(2)}, file)
    assert serialization.load_safetensors(file)["a"].tolist() == [1.0, 1.0]


def test_safetensors_library_agrees(tmp_path):
    st = pytest.importorskip("safetensors.torch")
    path = tmp_path / "m.safetensors"
    serialization.save_safetensors(some_tensors(), path)
    theirs = st.load_file(path)
    for k, t in some_tensors().items():
        assert theirs[k].tolist() == t.tolist() and str(theirs[k].dtype).split(".")[1] == str(t.dtype).split(".")[1]
    st.save_file({"a": torch.ones(2, dtype=torch.bfloat16), "b": torch.arange(3)}, path, metadata={"x": "y"})
    mine = clnn.load(path)
    assert mine["a"].dtype is clnn.bfloat16 and mine["a"].tolist() == [1.0, 1.0] and mine["b"].tolist() == [0, 1, 2]


def test_safetensors_shards(tmp_path):
    index = tmp_path / "model.safetensors.index.json"
    tensors = {f"t{i}": clnn.full((4,), float(i)) for i in range(5)}
    serialization.save_safetensors(tensors, index, max_shard_size=40)
    assert len([n for n in os.listdir(tmp_path) if n.endswith(".safetensors")]) == 3
    assert json.loads(index.read_text())["metadata"]["total_size"] == 80
    assert_equal_dicts(clnn.load(index), tensors)
    changed = json.loads(index.read_text())
    for bad in ("../m.safetensors", "/etc/passwd", "", ".."):
        changed["weight_map"]["t0"] = bad
        index.write_text(json.dumps(changed))
        with pytest.raises(SerializationError, match="own folder"):
            clnn.load(index)
    index.write_text("[1]")
    with pytest.raises(SerializationError, match="index"):
        clnn.load(index)


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return io.BytesIO(struct.pack("<Q", len(text)) + text + data)


def test_damaged_safetensors_are_refused():
    entry = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    assert serialization.load_safetensors(file_of({"a": entry}, b"\0" * 8))["a"].tolist() == [0.0, 0.0]
    bad = [io.BytesIO(b""), io.BytesIO(b"\xff" * 9), file_of(b"[]"), file_of(b"{bad"), file_of({"a": entry}, b"\0" * 7),
           file_of({"a": entry}, b"\0" * 9), file_of({"a": {**entry, "dtype": "F8"}}, b"\0" * 8), file_of({"a": {**entry, "shape": [3]}}, b"\0" * 8),
           file_of({"a": {**entry, "shape": [-2]}}, b"\0" * 8), file_of({"a": entry, "b": entry}, b"\0" * 8), file_of({"a": 1}),
           file_of(b'{"a":1,"a":1}'), file_of({"a": {**entry, "data_offsets": [8, 0]}}, b"\0" * 8), file_of(b"[" * 5000)]
    for file in bad:
        with pytest.raises(SerializationError):
            serialization.load_safetensors(file)
    for obj in ([clnn.ones(1)], {"a": 1}, {1: clnn.ones(1)}):
        with pytest.raises(SerializationError):
            serialization.save_safetensors(obj, io.BytesIO())
    with pytest.raises(SerializationError, match="metadata"):
        serialization.save_safetensors({}, io.BytesIO(), metadata={"a": 1})


def test_pickles_keep_strides():
    for x in (clnn.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=clnn.channels_last), clnn.arange(24.0).reshape(4, 6)[1:3, ::2], clnn.ones(2, 3).t()):
        got = pickle.loads(pickle.dumps(x))
        assert got.stride() == x.stride() and got.storage_offset() == x.storage_offset() and got.tolist() == x.tolist()


# -- whole objects ---------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("code", [b"cclnn.nn\nLinear\n(I2\nI2\ntR.", b"ctorch.nn.functional\nrelu\n(I2\ntR.", b"ctorch\nload\n(S'x'\ntR.",
                                    b"ctorch.nn.modules.module\nos\n.", b"ctorch.optim.sgd\nSGD\n(I2\ntR."],
                         ids=["init", "function", "load", "attribute", "optimizer"])
def test_files_with_modules_call_nothing(code):
    with pytest.raises(SerializationError):
        clnn.load(zip_with(code), weights_only=False)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize("form", [True, False])
def test_storages_are_saved_and_loaded_with_the_tensors_that_see_them(form):
    theirs, mine = [{"x": (x := lib.arange(3.0)), "all": x.storage()} for lib in (torch, clnn)]
    file = io.BytesIO()
    clnn.save(mine, file, _use_new_zipfile_serialization=form)
    file.seek(0)
    assert torch.load(io.BytesIO(file.getvalue()))["all"].tolist() == [0, 1, 2]
    for got in (clnn.load(file), clnn.load(saved_by_torch(theirs, _use_new_zipfile_serialization=form))):
        got["x"][0] = 7
        assert type(got["all"]) is clnn.TypedStorage and got["all"].tolist() == [7, 1, 2]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_pickles_of_tensors_made_under_pytorch_name_what_is_here():
    loaded = clnn.storage._load_from_bytes(torch.arange(6.0).storage().__reduce__()[1][0])
    assert loaded.dtype is clnn.float32 and clnn._utils._rebuild_tensor_v2(loaded, 1, (2, 2), (1, 2), False, {}).tolist() == [[1, 3], [2, 4]]
    own = clnn.arange(3).untyped_storage()
    assert all(again.tolist() == own.tolist() and again != own for again in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own), copy.copy(own)))
