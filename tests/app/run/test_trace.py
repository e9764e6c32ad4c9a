"""multiply --trace: a timeline that a viewer opens, which agrees with the run's record; and the record's own account of
what bounded the run."""
import collections
import json
import os
import re

import h5py

from lib import fails, leftovers, main, np, read, run, write

LANES = ["read", "upload", "exchange", "pack", "multiply", "download", "write"]


def make_inputs(m=200, k=300, n=150):
    write("a.h5", np.ones((m, k), "f4")), write("b.h5", np.ones((k, n), "f4"))


def load(name):
    with open(name) as file:
        return json.load(file)


def nanoseconds(event):
    return round(event["ts"] * 1000), round(event["dur"] * 1000)


def check_lanes(events, log):
    """Rows of the timeline: no two events at once, all of them inside the run, and bytes and flops as the record has
    them."""
    rows = collections.defaultdict(list)
    for event in events:
        rows[event["pid"], event["tid"]].append(event)
    for row in rows.values():
        last = 0
        for event in sorted(row, key=lambda event: nanoseconds(event)[0]):
            begin, took = nanoseconds(event)
            assert begin >= last and took >= 0, f"{event} begins before {last} ns"
            last = begin + took
        whole = log["setup_seconds"] + log["seconds"]
        assert last <= 1e9 * (whole + 0.1), f"{last} ns in a run of {whole} s"
    for rank in log["ranks"]:
        for number, lane in enumerate(LANES):
            row = rows[rank["rank"], number]
            assert sum(event["args"]["bytes"] for event in row) == rank[f"{lane}_bytes"], f"{lane} lane of {rank}"
            took = sum(nanoseconds(event)[1] for event in row) * 1e-9
            assert abs(took - rank[f"{lane}_seconds"]) < 1e-4, f"{lane} lane took {took}: {rank}"
        assert sum(event["args"]["flops"] for event in events if event["pid"] == rank["rank"]) == rank["flops"], rank
        tiles = [event for event in events if event["pid"] == rank["rank"] and event["args"]["kind"] == "multiply"]
        assert len(tiles) == rank["tiles"], f"{len(tiles)} products of {rank['tiles']}"


def size(what, text):
    number, unit = re.search(what + r" +([0-9.]+) ([kM]B)", text).groups()
    return float(number) * {"kB": 1e3, "MB": 1e6}[unit]


def names(trace, kind):
    return {(event["pid"], event.get("tid", -1)): event["args"]["name"]
            for event in trace["traceEvents"] if event["ph"] == "M" and event["name"] == kind}


def check_startup(trace, log):
    """Its parts stand before the run, one after the other."""
    at = 0
    parts = [event for event in trace["traceEvents"] if event.get("cat") == "start-up"]
    for part in parts:
        begin, took = nanoseconds(part)
        assert abs(begin - at) <= 1 and abs(took * 1e-9 - log[f"setup_{part['name']}_seconds"]) < 1e-8, part
        at = begin + took
    assert len(parts) == 6 and abs(at - round(1000 * trace["otherData"]["run_begins"])) <= 6, parts


def check_counters(trace, events):
    """A lane's rate while a step runs, and nothing between steps."""
    rates = {(c["pid"], c["name"], round(1000 * c["ts"])): list(c["args"].values())[0]
             for c in trace["traceEvents"] if c["ph"] == "C"}
    checked = 0
    for event in events:
        begin, took = nanoseconds(event)
        amount, unit = event["args"]["flops"] / 1e12, "TFLOP/s"
        if amount == 0:
            amount, unit = event["args"]["bytes"] / 1e9, "GB/s"
        if amount == 0 or took == 0:
            continue
        rate = rates[event["pid"], f"{LANES[event['tid']]} {unit}", begin]
        assert rate == 0 or abs(rate / (amount / took * 1e9) - 1) < 1e-5, (event, rate)
        checked += rate > 0
    assert checked > 10 and any(name == "host memory GB" for _, name, _ in rates), rates


def check_arrows(trace, events, ranks):
    """Each leads from a step to a later one of the same rank; along them every write comes from reads of A and B."""
    at = {(event["pid"], event["tid"], nanoseconds(event)[0]): event for event in events}
    ends = collections.defaultdict(dict)
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            assert event["ph"] not in ends[event["id"]], event
            ends[event["id"]][event["ph"]] = at[event["pid"], event["tid"], round(1000 * event["ts"])]
    sources = collections.defaultdict(list)
    for end in ends.values():
        assert end["s"]["pid"] == end["f"]["pid"] and sum(nanoseconds(end["s"])) <= sum(nanoseconds(end["f"])), end
        sources[id(end["f"])].append(end["s"])
    for write_of_c in (event for event in events if event["name"] == "write C"):
        seen, todo = set(), [write_of_c]
        while todo:
            event = todo.pop()
            seen.add(event["name"])
            todo += sources[id(event)]
        assert "multiply C" in seen and (ranks > 1 or {"read A", "read B"} <= seen), (write_of_c, seen)


def test_trace():
    make_inputs()
    for ranks, grid in ((1, "1x1"), (3, "3x1"), (3, "1x1x3"), (3, "2x1")):
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", 40, "--grid", grid,
            "--log", "log.json", "--trace", "trace.json", ranks=ranks)
        assert np.all(read("c.h5") == 300)
        log, trace = load("log.json"), load("trace.json")
        events = [event for event in trace["traceEvents"] if event["ph"] == "X" and event["cat"] != "start-up"]
        about = trace["otherData"]
        check_startup(trace, log)
        check_counters(trace, events)
        check_arrows(trace, events, ranks)
        assert "multiply a.h5" in about["command"] and about["format"] == 2, about
        active = [rank["rank"] for rank in log["ranks"] if rank["row"] >= 0]
        processes = names(trace, "process_name")
        assert (len(processes) == ranks and
                all(("idle" in name) == (pid not in active) for (pid, _), name in processes.items())), processes
        rows = {(pid, tid): lane for pid in active for tid, lane in enumerate(LANES)}
        assert names(trace, "thread_name") == {**rows, (0, len(LANES)): "start-up"}
        for event in events:
            if event["args"]["kind"] in ("read", "write", "multiply"):
                tile = [event["args"][side] for side in ("row", "col", "rows", "cols")]
                assert min(tile[:2]) >= 0 and min(tile[2:]) > 0, event
            assert ("kernel" in event["args"]) == (event["args"]["kind"] == "multiply"), event
        ran = {event["args"]["kernel"] for event in events if "kernel" in event["args"]}
        assert ran and ran <= set(re.findall(r"[a-z0-9]+", log["kernels"])), (ran, log["kernels"])
        check_lanes(events, log)
        steps = [event for event in events if event["cat"] == "step"]
        panels = -(-300 // 40) if grid != "1x1x3" else -(-100 // 40)
        for rank in active:
            kinds = collections.Counter(event["name"] for event in steps if event["pid"] == rank)
            assert kinds["multiply C"] == kinds["read A"] == kinds["read B"] == panels, (grid, kinds)
            assert kinds["write C"] == kinds["finish C"] >= 1, (grid, kinds)
            assert kinds["reduce C"] == (kinds["write C"] if grid == "1x1x3" else 0), (grid, kinds)
            assert kinds["gather B"] == (panels if grid in ("3x1", "2x1") else 0), (grid, kinds)
        assert sorted(event["pid"] for event in events if event["cat"] != "step") == active, "one sync a rank"
    assert not leftovers(), leftovers()


def test_empty():
    write("a.h5", np.ones((0, 3), "f4")), write("b.h5", np.ones((3, 4), "f4"))
    run("multiply", "a.h5", "b.h5", "-o", "e.h5", "--device", "cpu", "--log", "log.json", "--trace", "trace.json",
        ranks=2)
    events = load("trace.json")["traceEvents"]
    assert not [event for event in events if event.get("cat") == "step"], events
    assert load("log.json")["slowest_lane"] in ("none", "write"), load("log.json")


def test_refusals():
    """Before the run: no product, no trace."""
    make_inputs(20, 30, 10)
    for name in ("no/such/folder/t.json", "."):
        fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--trace", name, "--device", "cpu", ranks=2, code=1,
              says=["trace", name])
    write("c0.h5", np.ones((20, 10), "f4"))
    os.symlink("a.h5", "link.h5"), os.symlink(".", "here")
    arguments = ["multiply", "a.h5", "b.h5", "-o", "d.h5", "--device", "cpu"]
    inputs = {name: open(name, "rb").read() for name in ("a.h5", "b.h5", "c0.h5")}
    for same in ("a.h5", "b.h5", "d.h5", "c0.h5", "./a.h5", "here/d.h5", "link.h5", os.path.abspath("b.h5"),
                 os.path.abspath("d.h5")):
        for option in ("--trace", "--log"):
            fails(*arguments, "--add", "c0.h5", option, same, code=2, says=[option, same])
    for trace in ("own.json", "here/own.json"):
        fails(*arguments, "--log", "own.json", "--trace", trace, ranks=2, code=2, says=["--trace", trace])
    assert (all(open(name, "rb").read() == content for name, content in inputs.items()) and
            not os.path.exists("own.json"))
    run(*arguments, "--log", "/dev/null", "--trace", "/dev/null", "-o", "n.h5")
    assert not os.path.exists("d.h5") and not leftovers(), os.listdir(".")


def test_memory():
    """The trace counts against the memory limit: 88 bytes a step, here more than a small limit leaves; and the dry run
    writes none."""
    make_inputs(20, 3000, 10)
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--panel", 1, "--trace", "t.json", "--device", "cpu",
          "--host-memory", "500K", code=1, says=["--trace", "--panel"])
    run("multiply", "a.h5", "b.h5", "-o", "d.h5", "--panel", 1, "--device", "cpu", "--host-memory", "500K", "--force")
    run("multiply", "a.h5", "b.h5", "-o", "d.h5", "--panel", 1, "--trace", "t.json", "--device", "cpu", "--host-memory",
        "4M", "--force", "--verify")
    assert len([event for event in load("t.json")["traceEvents"] if event.get("cat") == "step"]) > 9000
    os.remove("t.json")
    run("multiply", "a.h5", "b.h5", "-o", "d.h5", "--trace", "t.json", "--device", "cpu", "--dry-run", "--force")
    assert not os.path.exists("t.json")


def test_memory_of_both():
    """Matrices larger than memory fill the limit: with a trace they are planned into less of it."""
    make_inputs(1000, 1000, 1000)
    arguments = ["multiply", "a.h5", "b.h5", "-o", "d.h5", "--force", "--device", "cpu", "--host-memory", "2M"]
    alone, beside = run(*arguments, "--dry-run").out, run(*arguments, "--trace", "t.json", "--dry-run").out
    trace = size("trace", beside)
    assert size("host in all", alone) + trace > 2 * 2**20 >= size("host in all", beside) + trace, (alone, beside)
    run(*arguments, "--trace", "t.json", ranks=1)
    steps = len([event for event in load("t.json")["traceEvents"] if event.get("cat") == "step"])
    assert 88 * steps < trace < 88 * steps + 400e3, (steps, trace)
    assert np.all(read("d.h5") == 1000)


def test_failing_trace():
    """The product stands when its timeline cannot be written, and the exit code says that something is missing."""
    make_inputs(20, 30, 10)
    fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--force", "--trace", "/dev/full", "--device", "cpu", ranks=2,
          code=1, says=["C is in place, but", "trace", "/dev/full"])
    assert np.all(read("d.h5") == 30)


def test_bounds():
    """What bounded the run, and the parts of the start-up: the same in JSON, in the file, and on the terminal."""
    make_inputs()
    for ranks in (1, 3):
        result = run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--grid", f"{ranks}x1",
                     "--log", "log.json", ranks=ranks)
        log = load("log.json")
        busy = {(rank["rank"], lane): rank[f"{lane}_seconds"] for rank in log["ranks"] for lane in LANES}
        bound = (log["limit_rank"], log["limit_lane"])
        least = min(busy[rank, "exchange"] for rank in range(ranks))  # the others also waited for this one
        most = max(least, *(seconds for (_, lane), seconds in busy.items() if lane != "exchange"))
        assert (busy[bound] == most == log["limit_seconds"] and
                abs(log["limit_share"] - most / log["seconds"]) < 1e-12), (bound, busy)
        assert 0 < log["limit_share"] <= 1, log["limit_share"]
        slowest = (log["slowest_rank"], log["slowest_lane"])
        mean = sum(busy[rank, slowest[1]] for rank in range(ranks)) / ranks
        assert (busy[slowest] == log["slowest_seconds"] and
                abs(busy[slowest] - mean - log["slowest_behind_seconds"]) < 1e-9), (slowest, busy)
        assert all(busy[rank, lane] - sum(busy[r, lane] for r in range(ranks)) / ranks <=
                   log["slowest_behind_seconds"] + 1e-9
                   for rank in range(ranks) for lane in LANES if lane != "exchange"), busy
        parts = [log[f"setup_{part}_seconds"] for part in ("mpi", "device", "transport", "plan", "allocation", "files")]
        assert (all(part >= 0 for part in parts) and parts[0] > 0 and
                abs(sum(parts) - log["setup_seconds"]) < 1e-6), (parts, log["setup_seconds"])
        with h5py.File("c.h5") as file:
            attributes = file["C.run"].attrs
            for name in ("limit_seconds", "limit_share", "limit_rank", "slowest_rank", "slowest_behind_seconds",
                         "setup_mpi_seconds"):
                assert attributes[name] == log[name], name
            assert attributes["limit_lane"] in (log["limit_lane"], log["limit_lane"].encode()), attributes["limit_lane"]
        lines = result.out.splitlines()
        said = {line[:12].strip(): line[12:] for line in lines if line[:1] > " "}
        assert said["start-up"].startswith(f"{log['setup_seconds']:.3f} s: mpi "), result.out
        assert "FLOP/s" in said["time"] and said["check"] == "not run", result.out
        share = f"{100 * log['limit_share']:.0f} %"
        assert said["bottleneck"].startswith(f"{bound[1]} of rank {bound[0]}, busy for {share} of the run"), result.out
        assert ("slowest" in said) == (ranks > 1), result.out


main(globals())
