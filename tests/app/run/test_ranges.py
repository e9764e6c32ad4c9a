"""Ranges of NVTX: a tool that listens hears of every step once, on the thread of its lane, with its tile; without one
nothing is different. On the CPU, whose lanes are the same."""
import collections
import glob
import json
import os

from lib import fails, main, np, read, run, write

LISTENER = os.environ["TSR_NVTX_LISTENER"]
LANES = ["read", "upload", "exchange", "pack", "multiply", "download", "write"]


def heard(ranks):
    """Of each process the names of its ranges by lane; each ends on its thread before the next begins."""
    files = sorted(glob.glob("heard.*"))
    assert len(files) == ranks, files
    lanes = collections.defaultdict(list)
    for name in files:
        with open(name) as file:
            lines = [line.rstrip("\n").split(" ", 1) for line in file]
        assert [text for what, text in lines if what == "domain"] == ["tessera"] and ["left", "it"] in lines, lines
        threads, open_ranges = {}, {}
        for what, text in lines:
            if what == "thread":
                thread, lane = text.split(" ", 1)
                threads[thread] = lane
            elif what == "begin":
                thread, lane, moved, label = text.split(" ", 3)
                assert thread not in open_ranges and threads[thread] == f"tessera {lane}", (text, threads)
                open_ranges[thread] = label
                lanes[lane].append((label, int(moved)))
            elif what == "end":
                assert open_ranges.pop(text), f"{text} ends twice"
        assert not open_ranges, open_ranges
        assert sorted(threads.values()) == sorted(f"tessera {lane}" for lane in LANES), threads
        os.remove(name)
    return lanes


def traced():
    """The same as the trace has it."""
    lanes = collections.defaultdict(list)
    with open("trace.json") as file:
        for event in json.load(file)["traceEvents"]:
            if event["ph"] != "X" or event["cat"] != "step":
                continue
            args, label = event["args"], event["name"]
            if "row" in args:
                row, col = args["row"], args["col"]
                label += f" [{row}:{row + args['rows']},{col}:{col + args['cols']}]"
            lanes[LANES[event["tid"]]].append((label, int(args["bytes"])))
    return lanes


def test_ranges():
    write("a.h5", np.ones((200, 300), "f4")), write("b.h5", np.ones((300, 150), "f4"))
    write("t.h5", np.ones((300, 200), "f4"))
    for ranks, arguments in ((1, ["a.h5"]), (2, ["a.h5", "--grid", "2x1"]), (2, ["t.h5", "--transpose-a"]),
                             (2, ["a.h5", "--grid", "1x1x2"])):
        run("multiply", arguments[0], "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--panel", 60, "--trace",
            "trace.json", *arguments[1:], ranks=ranks,
            environment={"NVTX_INJECTION64_PATH": LISTENER, "TSR_NVTX_HEARD": os.path.abspath("heard.")})
        assert np.all(read("c.h5") == 300)
        ranges, steps = heard(ranks), traced()
        assert {lane: sorted(some) for lane, some in ranges.items()} == {
            lane: sorted(some) for lane, some in steps.items()
        }, (ranges, steps)
        labels = {label for some in ranges.values() for label, _ in some}
        assert any(label.startswith("multiply C [0:") for label in labels), labels
        if ranks == 1:
            assert {"read A [0:200,60:120]", "read B [60:120,0:150]", "finish C [0:200,0:150]"} <= labels, labels
            assert "write C [0:200,0:150]" in labels, labels
        if "2x1" in arguments:
            assert "gather B [60:120,0:150]" in labels, labels
        if "--transpose-a" in arguments:
            assert any(label.startswith("pack A [60:120,0:") for label in labels), labels


def test_without():
    """A tool that cannot be loaded, and none."""
    for tool in ({}, {"NVTX_INJECTION64_PATH": os.path.abspath("absent.so")}):
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", environment=tool)
        assert np.all(read("c.h5") == 300) and not glob.glob("heard.*")
    fails("multiply", "a.h5", "a.h5", "-o", "d.h5", "--device", "cpu", code=1, says="300",
          environment={"NVTX_INJECTION64_PATH": LISTENER, "TSR_NVTX_HEARD": os.path.abspath("heard.")})


main(globals())
