"""The tuner and its files: winners are used, broken candidates lose, damaged files do no harm."""
import json

import pytest

import clnn
from clnn.runtime import params
from clnn.tune import cli, search


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLNN_CACHE_DIR", str(tmp_path))
    params.changed()
    yield tmp_path
    monkeypatch.undo()
    params.changed()


def row(op="gemm", place="default", key="float32/64x64x64", **values):
    return {"op": op, "place": place, "key": key, "params": values or {"MR": 4}}


def device():
    from clnn._tensor.device import resolve
    return resolve(None)


def test_look_up_prefers_the_nearest_place(cache):
    dev = device()
    params.write_rows(params.user_file(), [row(MR=4), row(place=dev.flavour, MR=6), row(place=dev.name, MR=8)])
    params.changed()
    assert params.lookup(dev, "gemm", "float32/64x64x64") == {"MR": 8}
    params.write_rows(params.user_file(), [row(MR=4), row(place=dev.flavour, MR=6)])
    params.changed()
    assert params.lookup(dev, "gemm", "float32/64x64x64") == {"MR": 6}
    assert params.lookup(dev, "gemm", "float32/1x1x1") is None


def test_a_damaged_file_costs_nothing_but_speed(cache):
    params.user_file().parent.mkdir(parents=True, exist_ok=True)
    params.user_file().write_text("{")
    params.changed()
    assert params.lookup(device(), "gemm", "no/such") is None
    with pytest.raises(ValueError, match="not a file of tuned parameters"):
        params.read_rows(params.user_file())


def test_forced_parameters_reach_the_kernel_and_stay_right(cache):
    a, b = clnn.rand(65, 70), clnn.rand(70, 90)
    want = a.numpy() @ b.numpy()
    for mr in (4, 8, 12):
        with params.forced("gemm", {"MR": mr, "NV": 2, "KB": 256}):
            assert abs((a @ b).numpy() - want).max() < 1e-3


def test_search_survives_broken_candidates(cache, monkeypatch):
    class Broken:
        about = {"device": "here"}

        def measure(self, op, problem, candidate):
            if candidate is None:
                return {"ms": 2.0, "key": "k"}
            if candidate["MR"] == 8:
                return {"ms": 1.0}
            return {"error": "crashed"} if candidate["MR"] == 4 else {"ms": 3.0}
    space = type("S", (), dict(name="gemm", values={"MR": (4, 6, 8, 12)}))()
    got = search.tune_problem(Broken(), space, (1, 2, 3), 5, search.State("test"), lambda text: None)
    assert got["params"] == {"MR": 8} and got["place"] == "here" and got["rule_ms"] == 2.0
    again = search.State("test")
    assert again.get("gemm", "k", {"MR": 4}) == {"error": "crashed"}


@pytest.mark.share(2, turn=1)
def test_a_real_search_in_a_process_of_its_own(cache):
    texts = []
    search.tune(None, ["gemm"], 8, {"gemm": [(96, 96, 96)]}, lambda text, share: texts.append((text, share)))
    assert texts[-1][1] == 1.0


def test_what_only_one_look_favoured_does_not_win(cache):
    class Moody:
        about, calls = {"device": "here"}, 0

        def measure(self, op, problem, candidate):
            self.calls += 1
            return {"ms": 1.0 if self.calls == 2 else 2.0, "key": "k"}
    space = type("S", (), dict(name="gemm", values={"MR": (4,)}))()
    assert search.tune_problem(Moody(), space, (1, 2, 3), 5, search.State("test"), lambda text: None) is None


def test_shipped_rows_are_well_formed_and_right():
    from clnn.tune.spaces import SPACES
    for path in params.shipped_files():
        for row in params.read_rows(path):
            values = SPACES[row["op"]].values
            assert all(v in values[k] for k, v in row["params"].items()), (path, row)


@pytest.mark.share(2, turn=1)
def test_a_crashing_worker_is_an_answer(cache):
    worker = search.Worker("cl:%d:%d" % device().cl_index)
    worker.start()
    worker.process.kill()
    worker.process.wait()
    assert "error" in worker.measure("gemm", (8, 8, 8), None)
    assert "ms" in worker.measure("gemm", (64, 64, 64), None)
    worker.stop()


def test_command_line(cache, capsys, tmp_path):
    file = tmp_path / "rows.json"
    params.write_rows(file, [row(MR=12)])
    assert cli.main(["merge", str(file)]) == 0
    assert cli.main(["show"]) == 0
    assert "MR=12" in capsys.readouterr().out
    assert cli.main(["export", str(tmp_path / "out.json")]) == 0
    assert row(MR=12) in json.loads((tmp_path / "out.json").read_text())["rows"]
    assert cli.main(["merge", str(tmp_path / "missing.json")]) == 1
    assert cli.main(["search", "--op", "nothing"]) == 1
    assert "no tunable operator" in capsys.readouterr().err


@pytest.mark.parametrize("arguments, text", [
    (["--budget", "0"], "positive number of seconds"), (["show", "rows.json"], "show takes no file"),
    ('{"gem": [[1, 2, 3]]}', "no tunable operator 'gem'"), ('{"gemm": [[1, 2]]}', "lists of 3 sizes"), ('{"gemm": 3}', "lists of 3 sizes"),
    ("[]", "expected {"), ("{", "is not JSON")])
def test_command_line_says_what_is_wrong(arguments, text, capsys, tmp_path):
    if isinstance(arguments, str):
        (tmp_path / "sizes.json").write_text(arguments)
        assert cli.main(["--shapes", str(tmp_path / "sizes.json")]) == 1
    else:
        with pytest.raises(SystemExit):
            cli.main(arguments)
    assert text in capsys.readouterr().err


def test_an_interrupted_search_keeps_what_it_measured(cache, monkeypatch):
    monkeypatch.setattr(search.Worker, "measure", lambda self, op, problem, candidate, left=iter(range(3)): {"ms": 1.0, "key": "k"} if next(left) < 2 else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        search.tune(ops=["gemm"], shapes={"gemm": [(8, 8, 8)]})
    name = device().name
    assert len(search.State(name).seen["gemm"]["k"]) == 1
    search.State(name).path.write_text("[]")
    assert search.State(name).seen == {}
