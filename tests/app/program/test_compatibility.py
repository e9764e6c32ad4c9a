"""What 0.1.0 wrote stays readable, and what it took is still taken. Its files, logs, traces, machine file and options
lie in tests/data, made by make_0.1.0.sh. Fields and options may be added. None may go, or change what it holds."""

import json
import pathlib
import shutil
import subprocess

from lib import ENVIRONMENT, TESSERA, fails, h5py, main, np, read, run

DATA = pathlib.Path(__file__).resolve().parents[2] / "data"
for file in (DATA / "0.1.0").iterdir():
    shutil.copy(file, ".")


def lost(old, new, where=""):
    """The fields of `old` that `new` lacks, or that hold another kind of value: text, number, list or object. Of lists
    the first elements are compared."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key, value in old.items()
            for line in ([f"{where}{key} is gone"] if key not in new else lost(value, new[key], f"{where}{key}."))
        ]
    if isinstance(old, list) and isinstance(new, list):
        return lost(old[0], new[0], f"{where}0.") if old and new else [f"{where} is empty"] * bool(old)
    if isinstance(old, (int, float)) and isinstance(new, (int, float)) or type(old) is type(new):
        return []
    return [f"{where[:-1]} was {old!r}, is {new!r}"]


def test_lost():
    """The check of the check."""
    old = {"a": 1, "b": [{"c": "x"}], "d": [1, 2]}
    assert lost(old, {"a": 2.5, "b": [{"c": "y", "new": 0}], "d": [1], "new": 1}) == []
    assert lost(old, {"a": "1", "b": [{}], "d": []}) == ["a was 1, is '1'", "b.0.c is gone", "d. is empty"]
    assert lost(old, {"a": 1, "b": {}, "d": 3}) == [f"b was {old['b']!r}, is {{}}", "d was [1, 2], is 3"]


def loaded(name):
    with open(name) as file:
        return json.load(file)


def test_matrices():
    a, b = read("a.h5", "A"), read("b.h5", "B")
    assert a.shape == (24, 16) and b.shape == (16, 20)
    for name, cols, stored in (
        ("a.h5", 16, "contiguous"),
        ("b.h5", 20, "contiguous"),
        ("c.h5", 20, "contiguous"),
        ("c_gzip.h5", 20, "gzip"),
    ):
        out = run("info", name).out
        line = [
            line
            for line in out.splitlines()
            if line[0:1] == "/" and f"{'16' if name == 'b.h5' else '24'} x {cols}" in line
        ]
        assert len(line) == 1 and "f32" in line[0] and stored in line[0] and f"/{name[0].upper()}" in line[0], out
    for name in ("c.h5", "c_gzip.h5"):
        assert np.array_equal(read(name), a @ b), name
        run("verify", "a.h5", "b.h5", name)
        run("compare", name, "c.h5", "--tolerance", "0")
    fails("compare", "c.h5", "a.h5", code=1, says="24 x 16")
    run("multiply", "c.h5", "c_gzip.h5", "-o", "square.h5", "--transpose-b")
    assert np.array_equal(read("square.h5"), a @ b @ (a @ b).T)
    # The same seed makes the same matrix.
    run("generate", "-o", "again.h5:/A", "--shape", "24x16", "--distribution", "integer", "--seed", "1")
    run("compare", "again.h5", "a.h5", "--tolerance", "0")
    # An output of 0.1.0 is replaced with its record.
    shutil.copy("c.h5", "replaced.h5")
    fails("multiply", "a.h5", "b.h5", "-o", "replaced.h5", code=1, says="--force")
    run("multiply", "a.h5", "b.h5", "-o", "replaced.h5", "--force", "--alpha", "2")
    with h5py.File("replaced.h5") as file:
        assert (
            np.array_equal(file["C"][:], 2 * (a @ b))
            and file["C.run"].attrs["alpha"] == 2
            and list(file) == ["C", "C.run"]
        ), list(file)


def test_info():
    """The run from the file and from its log, and what a trace and other JSON hold."""
    log = loaded("log.json")
    for name in ("c.h5", "c.h5:/C", "log.json"):
        out = run("info", name, "--ranks").out
        for said in (
            log["started"],
            log["command"],
            "24 x 20 x 16",
            "2 ranks, grid 2 x 1 x 1",
            "kernel      " + log["kernel"],
            "PASSED",
            log["ranks"][1]["host"],
        ):
            assert " ".join(said.split()) in " ".join(out.split()), f"'{said}' is not in {out}"
    assert "trace.json: 2 ranks" in run("info", "trace.json").out and "\nwrite " in run("info", "trace.json").out
    assert loaded("bench_gemm.json")["device"] in run("info", "bench_gemm.json").out
    assert "bounded_by" in run("info", "plan.json").out


def test_unfinished():
    """What a killed run of 0.1.0 left is not taken for a result."""
    with h5py.File("unfinished.h5") as file:
        assert "tessera_incomplete" in file["C"].attrs
    assert "incomplete" in run("info", "unfinished.h5").out
    fails("compare", "unfinished.h5", "c.h5", code=1, says="incomplete")
    fails("verify", "a.h5", "b.h5", "unfinished.h5", code=1, says="incomplete")
    fails("multiply", "unfinished.h5", "b.h5", "-o", "none.h5", "--transpose-b", code=1, says="incomplete")


def test_records():
    """The same run writes every field that it wrote then, into the file, the log and the trace."""
    run(
        "multiply",
        "a.h5",
        "b.h5",
        "-o",
        "new.h5",
        "--verify",
        "--log",
        "new_log.json",
        "--trace",
        "new_trace.json",
        ranks=2,
    )
    old, new = loaded("log.json"), loaded("new_log.json")
    assert lost(old, new) == []
    for key in (
        "a",
        "b",
        "a_rows",
        "a_cols",
        "b_rows",
        "b_cols",
        "c_rows",
        "c_cols",
        "a_type",
        "b_type",
        "c_type",
        "transpose_a",
        "transpose_b",
        "alpha",
        "beta",
        "m",
        "n",
        "k",
        "rank_count",
        "input",
        "type",
    ):
        assert old[key] == new[key], key
    assert (
        sum(rank["flops"] for rank in new["ranks"]) == sum(rank["flops"] for rank in old["ranks"]) == 2 * 24 * 20 * 16
    )
    with h5py.File("c.h5") as then, h5py.File("new.h5") as now:
        for item in ("C", "C.run"):
            kinds = [
                {
                    name: value if isinstance(value, str) else np.asarray(value).item()
                    for name, value in file[item].attrs.items()
                }
                for file in (then, now)
            ]
            assert lost(*kinds) == [], item
            assert "history" in kinds[0] or kinds[0]["m"] == kinds[1]["m"] == 24
        columns, columns_now = then["C.run/ranks"].dtype, now["C.run/ranks"].dtype
        for name in columns.names:
            assert (
                name in columns_now.names and columns[name].kind == columns_now[name].kind
            ), f"column {name} of C.run/ranks"
        assert then["C.run/ranks"]["flops"].sum() == now["C.run/ranks"]["flops"].sum()

    def rows(name):
        """The timeline: what a lane's step holds, and the names of the rows."""
        events = loaded(name)["traceEvents"]
        return [event for event in events if event["ph"] == "X"][0], {
            event["args"]["name"] for event in events if event["name"] == "thread_name"
        }

    (step, lanes), (step_now, lanes_now) = rows("trace.json"), rows("new_trace.json")
    assert (
        lost(step, step_now) == []
        and lanes <= lanes_now
        and lost(loaded("trace.json")["otherData"], loaded("new_trace.json")["otherData"]) == []
    )


def test_benchmarks():
    run("bench", "multiply", "--device", "cpu", "--shape", "64", "--repeat", "2", "--json", "new_multiply.json")
    run("bench", "gemm", "--device", "cpu", "--shape", "64", "--repeat", "2", "--json", "new_gemm.json")
    for name in ("multiply", "gemm"):
        assert lost(loaded(f"bench_{name}.json"), loaded(f"new_{name}.json")) == [], name


def test_plan():
    run("plan", "--shape", "1000", "--ranks", "4", "--machine", "h200_example.machine", "--json", "new_plan.json")
    old, new = loaded("plan.json"), loaded("new_plan.json")
    assert lost(old, new) == []
    for key in ("machine", "m", "n", "k", "type", "files", "ranks", "ranks_a_node"):
        assert old[key] == new[key], key
    assert 0.5 < new["seconds"] / old["seconds"] < 2, (
        old["seconds"],
        new["seconds"],
    )  # the machine's figures mean what they meant


def test_options():
    lines = [
        line for line in (DATA / "options_0.1.0.txt").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert len(lines) > 15
    for line in lines:
        process = subprocess.run(
            [TESSERA, *line.split()],
            capture_output=True,
            text=True,
            timeout=120,
            env=dict(ENVIRONMENT, CUDA_VISIBLE_DEVICES=""),
        )
        wanted = (
            process.returncode == 0
            or process.returncode == 1
            and ("missing" in process.stderr or "measures a GPU" in process.stderr)
        )
        assert wanted, f"tessera {line}\nexit code {process.returncode}\n{process.stderr}"
    for line, option in (("multiply", "--no-such-option=1"), ("info", "--devicez")):  # the check of the check
        process = subprocess.run(
            [TESSERA, line, option, "missing.h5"], capture_output=True, text=True, timeout=60, env=ENVIRONMENT
        )
        assert process.returncode == 2, f"{line} {option}: exit code {process.returncode}"


main(globals())
