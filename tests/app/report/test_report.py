"""tessera report: one page or 80 columns of text, of whatever a run, bench or plan left; and one line of error for what
is none of these."""

import json
import os
import pathlib
import re
import shutil

from lib import fails, h5py, leftovers, main, np, read, run, write

DATA = pathlib.Path(__file__).resolve().parents[2] / "data" / "0.1.0"
MACHINE = pathlib.Path(__file__).resolve().parents[3] / "jobs" / "h200_example.machine"
LANES = ["read", "upload", "exchange", "pack", "multiply", "download", "write"]


def load(name):
    with open(name) as file:
        return json.load(file)


def save(name, what):
    with open(name, "w") as file:
        file.write(what if isinstance(what, str) else json.dumps(what))
    return name


def data_of(page):
    """What the page embeds."""
    with open(page) as file:
        text = file.read()
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert len(found) == 1 and text.endswith("</html>\n"), text[:300]
    return json.loads(found[0])


def narrow(text):
    wide = [line for line in text.splitlines() if len(line) > 80 and " " in line.strip()]
    assert not wide, wide
    return text


def make_run(ranks=2, name="c.h5", *options):
    if not os.path.exists("a.h5"):
        write("a.h5", np.ones((60, 40), "f4")), write("b.h5", np.ones((40, 50), "f4"))
    run(
        "multiply",
        "a.h5",
        "b.h5",
        "-o",
        name,
        "--force",
        "--device",
        "cpu",
        "--panel",
        10,
        "--log",
        "run.json",
        "--trace",
        "trace.json",
        *options,
        ranks=ranks,
    )
    return load("run.json")


def test_page():
    record = make_run(2, "c.h5", "--verify")
    for name in ("c.h5", "c.h5:/C", "c.h5:/C.run", "run.json"):
        run("report", name, "--trace", "trace.json", "-o", "p.html")
        data = data_of("p.html")
        assert len(data["items"]) == 1, data["items"]
        item = data["items"][0]
        assert item["kind"] == "run" and item["lacks"] == [], item
        assert item["record"] == {field: record[field] for field in item["record"]}, name
        assert set(record) - set(item["record"]) == {"status", "exit_code", "message", "stage", "progress"}
        steps = [e for e in load("trace.json")["traceEvents"] if e["ph"] == "X" and e["cat"] != "start-up"]
        trace = data["trace"]
        assert trace["ranks"] == 2 and trace["steps"] == len(trace["events"]) == len(steps), trace["steps"]
        assert trace["command"] == record["command"] and sum(e[5] for e in trace["events"]) == sum(
            e["args"]["bytes"] for e in steps
        )
    run("report", "c.h5")
    with open("report.html") as page:
        text = page.read()
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", ""), "a link to a network"
    assert "default-src 'none'" in text and len(text) < 200e3, len(text)
    assert run("report", "c.h5", "-o", "-").out == text
    assert not leftovers(), leftovers()


def test_text():
    record = make_run(2)
    text = narrow(run("report", "run.json", "--trace", "trace.json", "--text").out)
    assert "A 60 x 40 matrix times a 40 x 50 one took" in text and "2 ranks" in text, text
    assert f"{100 * record['limit_share']:.0f} % of the limit" in " ".join(text.split()), text
    for lane in LANES:
        busy = any(rank[f"{lane}_seconds"] > 0 for rank in record["ranks"])
        assert bool(re.search(rf"^  {lane} +[#.]+ ", text, re.M)) == busy, (lane, text)
    assert (
        re.search(r"^timeline +\d+ steps of 2 ranks", text, re.M) and "versions" in text and "predicted" in text
    ), text
    assert record["command"] in " ".join(text.split()) and "not said" not in text, text
    assert "".join(text.split()) in "".join(
        run("report", "run.json", "--trace", "trace.json", "-o", "-").out.partition("<pre>")[2].split()
    )


def test_redistribution():
    """Of matrices in memory, which a program's call multiplied: a part of exchange."""
    record = make_run(2)
    assert "redistributed" not in run("report", "run.json", "--text").out
    save("memory.json", dict(record, redistribute_seconds=0.25, redistribute_bytes=3.5e6))
    text = " ".join(narrow(run("report", "memory.json", "--text").out).split())
    assert "exchange 0.250 s of it redistributed matrices in memory: 3.50 MB from rank to rank" in text, text


def test_of_multiply():
    """multiply --report writes the page of its own record and steps, and none where it cannot run."""
    record = make_run(3, "c.h5", "--grid", "2x1", "--report", "own.html")
    run("report", "c.h5", "--trace", "trace.json", "-o", "later.html")
    own, later = data_of("own.html"), data_of("later.html")
    assert own["items"][0]["record"]["seconds"] == record["seconds"]
    assert own["trace"].pop("file") == "" and later["trace"].pop("file") == "trace.json"
    steps = own["trace"].pop("events"), later["trace"].pop("events")
    assert len(steps[0]) == len(steps[1]) > 20  # times of a file are rounded, and begin with the start-up
    assert all(np.allclose(a, b, rtol=0, atol=0.11) for a, b in zip(*steps)), steps
    ends = [[row.pop("end") for row in trace["rows"]] + [trace.pop("end")] for trace in (own["trace"], later["trace"])]
    assert np.allclose(*ends, rtol=0, atol=0.11) and own["trace"] == later["trace"], (own["trace"], later["trace"])
    os.remove("trace.json")
    run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", 10, "--report", "own.html",
        ranks=2)
    trace = data_of("own.html")["trace"]
    assert trace["ranks"] == 2 and trace["command"] == data_of("own.html")["items"][0]["record"]["command"]
    assert sum(event[6] for event in trace["events"]) == 2 * 60 * 40 * 50
    assert not os.path.exists("trace.json")
    arguments = ["multiply", "a.h5", "b.h5", "-o", "d.h5", "--device", "cpu", "--report"]
    fails(*arguments, "no/such/p.html", code=1, says="no/such")
    for same in ("a.h5", "d.h5"):
        fails(*arguments, same, code=2, says=["--report", same])
    assert not os.path.exists("d.h5") and not leftovers(), os.listdir(".")
    for ranks in (0, 2):  # C stays, and log and exit code say alike that the page is missing
        fails(*arguments, "/dev/full", "--log", "run.json", "--force", code=1, ranks=ranks,
              says=["C is in place, but", "/dev/full"])
        record = load("run.json")
        assert (record["status"], record["exit_code"]) == ("failed", 1), record
        assert "C is in place, but" in record["message"] and np.all(read("d.h5") == read("c.h5")), record


def test_of_multiply_without_memory():
    """The steps of the page are counted as those of --trace are; where there is no room, the page has no timeline."""
    write("a.h5", np.ones((20, 3000), "f4")), write("b.h5", np.ones((3000, 10), "f4"))
    arguments = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", 1]
    fails(*arguments, "--host-memory", "500K", "--trace", "t.json", code=1, says=["--trace needs"])
    made = run(*arguments, "--host-memory", "500K", "--report", "own.html", "--log", "run.json")
    assert "the report has no timeline" in made.err and "--panel" in load("run.json")["warnings"], made.err
    data = data_of("own.html")
    assert "trace" not in data and data["items"][0]["record"]["panel"] == 1
    plan = run(*arguments, "--host-memory", "8M", "--report", "own.html", "--dry-run").out
    assert re.search(r"^trace +1\.\d+ MB of host memory", plan, re.M), plan
    assert "trace" not in run(*arguments, "--host-memory", "8M", "--dry-run").out
    run(*arguments, "--host-memory", "8M", "--report", "own.html", "--quiet")
    trace = data_of("own.html")["trace"]
    assert 9000 < trace["steps"] == sum(event[7] for event in trace["events"]), trace["steps"]
    os.remove("a.h5"), os.remove("b.h5")


def test_machine():
    """Ceilings of a machine file: a rank's share of what its node and all nodes have."""
    record = make_run(2)
    sample = open(MACHINE).read()
    slow = re.sub(r"^gpus_per_node .*", "gpus_per_node = 1", sample, flags=re.M)
    slow = re.sub(r"^file_read_GBps_in_all .*", "file_read_GBps_in_all = 5", slow, flags=re.M)
    node = {"read": 11e9, "upload": 48e9, "exchange": 397e9, "pack": 4300e9, "multiply": 215e12, "download": 38e9,
            "write": 2.9e9}
    for file, ceilings in ((save("own.machine", sample), node),
                           (save("slow.machine", slow), dict(node, read=2.5e9, write=5.8e9, exchange=200e9))):
        run("report", "run.json", "c.h5", "--machine", file, "-o", "p.html")
        for item in data_of("p.html")["items"]:
            assert item["machine"] == file and item["ceilings"] == ceilings, (item["ceilings"], ceilings)
            assert item["record"]["expected_read_GBps"] == record["expected_read_GBps"], "the record stays as it was"
        text = narrow(run("report", "run.json", "--machine", file, "--text").out)
        assert f"at the rates of {file}" in " ".join(text.split()) and "the plan predicted" not in text, text
        most = max(rank["read_bytes"] for rank in record["ranks"]) / ceilings["read"]
        beside = re.search(r"^  read .* ([0-9.e-]+) us$", text, re.M).group(1)
        assert abs(float(beside) / (1e6 * most) - 1) < 0.01, (text, most)
    assert "machine" not in data_of(make_page("run.json"))["items"][0]


def make_page(*names):
    run("report", *names, "-o", "plain.html")
    return "plain.html"


def test_machine_refusals():
    make_run(1)
    good = open(MACHINE).read()
    run("plan", "--shape", "900", "--ranks", 2, "--machine", MACHINE, "--json", "plan.json")
    line = 1 + good[: good.index("gpu_link_GBps")].count("\n")
    for text, says in (
        (good.replace("gpu_link_GBps", "gpu_link"), [f"own.machine:{line}:", "unknown key 'gpu_link'", "use"]),
        (good.replace("= 397", "= fast"), [f"own.machine:{line}:", "'fast'", "write a number"]),
        (re.sub("gpu_link_GBps.*", "", good), ["own.machine:", "without key 'gpu_link_GBps'", "add a line"]),
        (re.sub("f32_tflops.*", "", good), ["own.machine", "products of f32", "add a line 'f32_tflops = NUMBER'"]),
        ("hello", ["own.machine:1:", "key = value"]),
    ):
        save("own.machine", text)
        failed = fails("report", "run.json", "--machine", "own.machine", "-o", "bad.html", code=1, says=says)
        assert len(failed.err.strip().splitlines()) == 1 and not os.path.exists("bad.html"), failed.err
    fails("report", "run.json", "--machine", "absent.machine", code=1, says=["absent.machine", "name a machine file"])
    fails("report", "plan.json", "--machine", MACHINE, code=2, says=["--machine", "none of these files is a run"])
    fails("report", "run.json", "--machine", "own.machine", "-o", "own.machine", code=2, says="overwrite")
    with open("run.json") as file:
        old = json.load(file)
    fails("report", save("old.json", dict(old, input="")), "--machine", MACHINE, code=1, says=["old.json", "type"])


def test_several():
    make_run(1, "one.h5")
    shutil.copy("run.json", "one.json")
    make_run(2, "two.h5")
    run("report", "one.json", "run.json", "-o", "two.html")
    assert [item["record"]["rank_count"] for item in data_of("two.html")["items"]] == [1, 2]
    text = narrow(run("report", "one.json", "two.h5", "--text").out)
    assert text.startswith("runs, each beside the first") and re.search(r"all +\S+ \S+ +[+-][0-9.]+ %", text), text
    write("none.h5", np.ones((2, 2)))
    with h5py.File("both.h5", "w") as both, h5py.File("one.h5") as one, h5py.File("two.h5") as two:
        one.copy("C.run", both, "A.run"), two.copy("C.run", both, "B.run")
    run("report", "both.h5", "-o", "both.html")
    assert [item["name"] for item in data_of("both.html")["items"]] == ["both.h5:/A.run", "both.h5:/B.run"]


def test_earlier_version():
    """Files of 0.1.0, and what they do not say."""
    run("report", DATA / "log.json", DATA / "c.h5", "--trace", DATA / "trace.json", "-o", "old.html")
    data = data_of("old.html")
    for item in data["items"]:
        assert "the schedule" in item["lacks"] and any("predicted" in what for what in item["lacks"]), item["lacks"]
        assert item["record"]["m"] == 24 and len(item["record"]["ranks"]) == 2
    assert data["trace"]["steps"] == sum(e["ph"] == "X" for e in load(DATA / "trace.json")["traceEvents"])
    text = narrow(run("report", DATA / "log.json", "--text").out)
    assert re.search(r"^not said +the schedule; ", text, re.M), text
    names = ["bench_gemm", "bench_multiply", "plan"]
    run("report", *[DATA / f"{name}.json" for name in names], "-o", "old.html")
    assert [item["kind"] for item in data_of("old.html")["items"]] == ["gemm", "multiply", "plan"]
    narrow(run("report", *[DATA / f"{name}.json" for name in names], "--text").out)


def test_bench_and_plan():
    run("bench", "gemm", "--shape", "48", "--device", "cpu", "--repeat", 1, "--kernel", "blas", "--json", "gemm.json")
    run("bench", "memory", "--size", 64, "--device", "cpu", "--repeat", 1, "--json", "memory.json")
    run(
        "bench",
        "accuracy",
        "--size",
        16,
        "--k",
        "16,64",
        "--device",
        "cpu",
        "--kernel",
        "blas",
        "--json",
        "accuracy.json",
    )
    run("plan", "--shape", "9000", "--ranks", 8, "--machine", DATA / "h200_example.machine", "--json", "plan.json")
    kinds = ["gemm", "memory", "accuracy", "plan"]
    run("report", *[f"{kind}.json" for kind in kinds], "-o", "bench.html")
    items = data_of("bench.html")["items"]
    assert [item["kind"] for item in items] == kinds
    for item in items:
        assert item["data"] == load(f"{item['kind']}.json"), item["kind"]
    text = narrow(run("report", *[f"{kind}.json" for kind in kinds], "--text").out)
    assert all(word in text for word in ("blas", "GFLOP/s", "copy", "GB/s", "bound / eps", "bounded by")), text


def test_hostile():
    """Names cannot leave the data, and what is broken is one line of error."""
    record = make_run(1)
    evil = "</script><script>alert(1)</script><!--\"'&"
    record.update(command=evil, a=evil, warnings=evil + "\n" + evil, alpha=None, gflops=None)
    record["ranks"][0].update(host=evil, device=evil, wall_seconds=None)
    trace = load("trace.json")
    trace["otherData"]["command"] = evil
    next(e for e in trace["traceEvents"] if e["name"] == "process_name")["args"]["name"] = f"rank 0 on {evil}: {evil}"
    [e for e in trace["traceEvents"] if e["ph"] == "X"][-1]["args"]["kind"] = "</script>"
    run("report", save("evil.json", record), "--trace", save("evil_trace.json", trace), "-o", "evil.html")
    with open("evil.html") as page:
        text = page.read()
    assert text.count("</script>") == 2 and "<script>alert" not in text and "<!--" not in text, text[:2000]
    item = data_of("evil.html")["items"][0]["record"]
    assert item["command"] == evil and item["gflops"] is None and item["ranks"][0]["wall_seconds"] is None
    narrow(run("report", "evil.json", "--trace", "evil_trace.json", "--text").out)
    os.rename("evil.json", "evil<b>&.json")
    run("report", "evil<b>&.json", "-o", "evil.html")
    assert "<title>Tessera: evil&lt;b&gt;&amp;.json</title>" in open("evil.html").read()


def test_refusals():
    make_run(1)
    good, trace = open("run.json").read(), load("trace.json")
    write("none.h5", np.ones((2, 2)))
    kept = save("kept.html", "kept")
    empty = dict(trace, traceEvents=[e for e in trace["traceEvents"] if e["ph"] != "X"])
    another = dict(trace, otherData={"command": "tessera x"})
    for arguments, says in (
        ([save("cut.json", good[:-40])], ["cut.json", "no JSON"]),
        ([save("nan.json", good.replace('"m": 60', '"m": NaN'))], ["nan.json", "line"]),
        ([save("other.json", {"x": 1})], ["other.json", "neither"]),
        ([save("list.json", [1, 2])], ["list.json", "neither"]),
        (
            [save("failed.json", {"format": 2, "status": "failed", "command": "x", "rank_count": 1})],
            ["failed.json", "'failed'"],
        ),
        (["trace.json"], ["trace.json", "--trace"]),
        (["none.h5"], ["none.h5", "no record"]),
        (["none.h5:/nothing"], ["none.h5", "nothing"]),
        (["absent.json"], ["absent.json"]),
        ([save("x.txt", "hello")], ["x.txt"]),
        ([save("x.npy", "hello")], ["x.npy"]),
        (["run.json", "--trace", save("empty.json", empty)], ["empty.json", "no step"]),
        (["run.json", "--trace", "run.json"], ["run.json", "no trace"]),
        (["run.json", "--trace", save("cut_trace.json", '{"traceEvents": [')], ["cut_trace.json", "no JSON"]),
        (["run.json", "--trace", "absent.json"], ["absent.json"]),
    ):
        fails("report", *arguments, "-o", kept, code=1, says=says)
    for arguments, says in (
        ([], "name what a run left"),
        (["run.json", "-o", "run.json"], "overwrite"),
        (["run.json", "--text", "-o", "x.txt"], "--text prints to standard output"),
        (["run.json", "--trace", "trace.json", "-o", "./trace.json"], "overwrite"),
        (["run.json", "--trace", save("x.json", another), "-o", kept], ["x.json", "another run (tessera x)"]),
    ):
        fails("report", *arguments, code=2, says=says)
    fails("report", "run.json", "-o", "no/such/p.html", code=1, says="no/such")
    fails("report", "run.json", "-o", "/dev/full", code=1, says="/dev/full")
    assert open(kept).read() == "kept" and open("run.json").read() == good and not leftovers(), os.listdir(".")


def test_large_trace():
    """Steps that follow each other are joined, and of many ranks three are shown: nothing is lost of what they sum up
    to."""
    record = make_run(1)
    one = {"ph": "X", "name": "read A", "cat": "step", "tid": 0, "dur": 1.0}
    args = {"kind": "read", "operand": "A", "bytes": 10, "flops": 0}
    events = [dict(one, pid=0, ts=float(2 * i), args=args) for i in range(30000)]
    run("report", "run.json", "--trace", save("many.json", {"traceEvents": events}), "-o", "many.html")
    trace = data_of("many.html")["trace"]
    assert trace["steps"] == sum(e[7] for e in trace["events"]) == 30000 > 10 * 128, trace["steps"]
    assert sum(e[5] for e in trace["events"]) == 300000 and len(trace["events"]) <= 10000, len(trace["events"])
    assert abs(sum(e[8] for e in trace["events"]) - 30000) < 1
    events = [dict(one, pid=rank, ts=float(100 * rank), args=args) for rank in range(200)]
    run("report", "run.json", "--trace", save("ranks.json", {"traceEvents": events}), "-o", "ranks.html")
    trace = data_of("ranks.html")["trace"]
    assert trace["ranks"] == 200 and [row["rank"] for row in trace["rows"]] == [0, 100, 199], trace["rows"]
    ranks = [dict(record["ranks"][0], rank=rank, host=f"node{rank // 8}") for rank in range(64)]
    steps = [
        dict(one, pid=rank, tid=lane, ts=float(2 * i), args=dict(args, bytes=123456789))
        for rank in range(64)
        for lane in range(7)
        for i in range(40)
    ]
    run(
        "report",
        save("r64.json", dict(record, ranks=ranks, rank_count=64)),
        "--trace",
        save("t64.json", {"traceEvents": steps}),
        "-o",
        "p64.html",
    )
    assert len(data_of("p64.html")["trace"]["rows"]) == 64 and os.path.getsize("p64.html") < 1e6, os.path.getsize(
        "p64.html"
    )


main(globals())
