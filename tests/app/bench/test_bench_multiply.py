"""tessera bench multiply on the CPU: data in shared memory and made in place, on 1, 2 and 3 ranks; what it shows,
checks and refuses."""
import json
import math
import os
import subprocess

from lib import ENVIRONMENT, TESSERA, fails, main, run

OPTIONS = ["--device", "cpu", "--repeat", "3"]


def bench(*args, ranks=0, **more):
    out = run("bench", "multiply", *OPTIONS, *args, "-o", "bench.json", ranks=ranks, timeout=120, **more).out
    with open("bench.json") as file:
        figures = json.load(file)
    assert figures["format"] == figures["record"]["format"] == 2, figures
    return figures, out


def check_figures(figures, out, m, n, k, ranks):
    record = figures["record"]
    assert [record[key] for key in "mnk"] == [m, n, k] and record["rank_count"] == ranks, record
    assert len(figures["seconds"]) == 3 and all(seconds > 0 for seconds in figures["seconds"]), figures
    assert figures["best_seconds"] == sorted(figures["seconds"]), figures
    best = min(figures["seconds"])
    assert (math.isclose(figures["tflops"], 2e-12 * m * n * k / best, rel_tol=1e-4) and
            math.isclose(record["seconds"], best, rel_tol=1e-6)), figures
    assert math.isclose(figures["first_share"], best / figures["seconds"][0], rel_tol=1e-4), figures
    assert math.isclose(figures["alone"]["ratio"], figures["tflops"] / figures["alone"]["tflops"], rel_tol=1e-4), \
        figures
    assert 0 < figures["alone"]["slowest_tflops"] <= figures["alone"]["tflops"], figures
    assert figures["alone"]["not_measured"] == "", figures["alone"]
    assert (figures["limit"]["lane"] not in ("none", "exchange") and
            math.isclose(figures["limit"]["share"], figures["limit"]["seconds"] / best, rel_tol=1e-4)), figures
    # the record is of one repetition, not of all: every multiplication once
    assert sum(rank["flops"] for rank in record["ranks"]) == 2 * m * n * k, record["ranks"]
    busy = [rank[f"{lane}_seconds"] for rank in record["ranks"] for lane in ("read", "multiply", "download", "write")]
    assert max(busy) <= best, (busy, best)
    # what lanes waited for is no limit: the largest of the others is, the multiply lane's at the rate alone
    rate = figures["alone"]["tflops"] * 1e12 / ranks
    lanes = [seconds for rank in record["ranks"] for seconds in [rank["flops"] / rate] +
             [rank[f"{lane}_seconds"] for lane in ("read", "upload", "pack", "download", "write")]]
    assert math.isclose(figures["limit"]["seconds"], max(lanes), rel_tol=1e-4), (figures["limit"], lanes)
    for text in ("repetition   3", "best 3:", "alone", "limit", figures["record"]["check"]):
        assert text in out, f"no '{text}' in {out}"


def test_data_and_ranks():
    for ranks in (1, 2, 3):
        for data in ("memory", "device"):
            figures, out = bench("--data", data, "--shape", "301x211x167", "--distribution", "integer", "--grid",
                                 f"{ranks}x1", ranks=ranks)
            check_figures(figures, out, 301, 211, 167, ranks)
            assert (figures["data"] == data and
                    figures["record"]["check"] ==
                    f"PASSED: {144 * ranks} elements of C exact"), figures["record"]["check"]
            making = figures["alone"]["making_seconds"]
            assert making is None if data == "memory" else 0 < making < 60, making
            assert ("making A and B alone" in out) == (data == "device"), out


def test_grids():
    """k split over ranks, several super-blocks, idle ranks."""
    figures, _ = bench("--data", "memory", "--shape", "50x40x900", "--grid", "1x1x2", ranks=2)
    assert figures["record"]["grid_k"] == 2 and figures["record"]["check"].startswith("PASSED"), figures["record"]
    figures, _ = bench("--data", "memory", "--shape", "700x600x500", "--memory", "1500K", "--host-memory", "1500K",
                       ranks=2)
    record = figures["record"]
    assert record["super_blocks_m"] * record["super_blocks_n"] > 1 and record["check"].startswith("PASSED"), record
    figures, _ = bench("--data", "memory", "--shape", "64x48x32", "--grid", "1x2", ranks=3)
    assert ([rank["row"] for rank in figures["record"]["ranks"]] == [0, 0, -1] and
            figures["record"]["check"].startswith("PASSED")), figures["record"]


def test_reproducible():
    """By the kernel whose sums are the same everywhere, cut at its blocks."""
    for more in (["--data", "memory"], ["--data", "device", "--gram", "--shape", "300"]):
        figures, _ = bench("--shape", "20x30x40000", *more, "--reproducible", "--type", "f64", ranks=2)
        record = figures["record"]
        assert record["kernel"] == "exact" and "exact" in record["reproducible"], record
        assert record["check"].startswith("PASSED"), record
    figures, _ = bench("--shape", "20x30x40000", "--reproducible", "--kernel", "reference", ranks=2)
    assert figures["record"]["reproducible"] == "reference on device cpu, ranges of 16384 of k", figures["record"]
    fails("bench", "multiply", "--reproducible", "--kernel", "blas", "--shape", "9", "--device", "cpu", code=2,
          says="there are exact, reference")


def test_check():
    """As multiply checks: by random vectors, or what the kernel adds up itself. Of one product."""
    for kernel, says in (("reference", "PASSED: 40 rows of products, off by "),
                         ("exact", "PASSED: 40 rows of products add up exactly")):
        command = ["--kernel", kernel, "--type", "f64", "--shape", "40x50x60"]
        figures, out = bench(*command, "--check")
        assert figures["record"]["product_check"].startswith(says) and says in out, figures["record"]
        figures, _ = bench(*command)
        assert figures["record"]["product_check"] == "not run", figures["record"]["product_check"]


def test_gram():
    """Half of the flops; what is shown is the whole product's rate, and a wrong C would be seen in both halves."""
    for data in ("device", "memory"):
        for ranks, options in ((0, ()), (2, ("--grid", "2x1x1")), (2, ())):
            figures, _ = bench("--gram", "--shape", "700x700x90", "--data", data, "--panel", 40, *options, ranks=ranks)
            record = figures["record"]
            flops = sum(rank["flops"] for rank in record["ranks"])
            assert record["gram"] == 1 and 1 < flops / (700 * 700 * 90) < 1.5, record
            assert record["check"].startswith("PASSED"), record["check"]
    fails("bench", "multiply", "--gram", "--shape", "70x60x50", code=2, says="--gram: C = A A' is square")


def test_alone_without_memory():
    """What is measured beside the run does not fit into memory: it says so, and what was measured before stays."""
    limited = ["prlimit", f"--as={2 << 30}", TESSERA] # A of the kernel alone would take 2.25 GB; the run takes panels
    command = [*limited, "bench", "multiply", *OPTIONS, "--repeat", "1", "--no-check", "--type", "f64",
               "--distribution", "identity", "--shape", "128x1x2200000",
               "--memory", "32M", "--host-memory", "32M", "-o", "bench.json"]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert (process.returncode == 0 and "not measured alone: " in process.stdout and
            "on every rank at once" not in process.stdout), process.stdout + process.stderr
    with open("bench.json") as file:
        figures = json.load(file)
    alone = figures["alone"]
    assert alone["ratio"] is alone["tflops"] is None and alone["not_measured"], alone
    assert figures["tflops"] > 0 and 0 < figures["limit"]["share"] <= 1, figures


def test_types():
    for kind, distribution in (("f16", "uniform"), ("bf16", "normal"), ("f32", "identity"), ("f64", "uniform"),
                               ("f64", "integer")):
        figures, _ = bench("--type", kind, "--data", "memory", "--shape", "65x44x83", "--distribution", distribution)
        record = figures["record"]
        assert figures["operands"] == kind and record["type"] == ("f64" if kind == "f64" else "f32"), figures
        assert ("exact" if distribution in ("identity", "integer") else "allowed") in record["check"], record["check"]
    figures, _ = bench("--kernel", "reference", "--no-check", "--shape", "20")
    assert figures["record"]["kernel"] == "reference" and figures["record"]["check"] == "not run", figures["record"]


def test_trace():
    """The last multiplication alone, every rank's: all products, one after the other."""
    m, n, k = 150, 140, 130
    bench("--data", "memory", "--shape", f"{m}x{n}x{k}", "--panel", "40", "--grid", "2x1", "--trace", "trace.json",
          ranks=3)
    with open("trace.json") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    products = [event for event in events if event["name"] == "multiply C"]
    assert (sum(event["args"]["flops"] for event in products) == 2 * m * n * k and
            {event["pid"] for event in products} == {0, 1}), products
    for rank in (0, 1):
        row = sorted(((event["ts"], event["ts"] + event["dur"]) for event in products if event["pid"] == rank))
        assert len(row) == 4 and all(before[1] <= after[0] + 1e-3 for before, after in zip(row, row[1:])), row
    fails("bench", "multiply", "--trace", "no/such/folder/x.json", "--shape", "8", ranks=2, code=1,
          says="no/such/folder")


def test_usage():
    for wrong in (["--data", "disk"], ["--type", "i16"], ["--shape", "2x3"], ["--distribution", "zipf"],
                  ["--repeat", "0"], ["--peer", "cosma"], ["--grid", "3"],
                  ["--blocks", "1,,2"], ["--blocks", "1,2,3,4,5,6,7,8,9"], ["--accuracy", "most"], ["--memory", "0"]):
        fails("bench", "multiply", *wrong, code=2, says=wrong[0] if wrong[0] != "--distribution" else wrong[1])
    fails("bench", "multiply", "--peer", "cublasxt", code=2, says="--data memory")
    fails("bench", "multiply", "--peer", "cublasxt", "--data", "memory", "--type", "bf16", code=2, says="bf16")
    fails("bench", "multiply", "--peer", "cublasxt", "--data", "memory", "--shape", "8", "--device", "cpu", ranks=2,
          code=1, says="needs GPUs")
    fails("bench", "multiply", "--data", "memory", "--shape", "10000000", ranks=2, code=1, says=["free", "--shape"])
    fails("bench", "multiply", "-o", "no/such/folder/x.json", "--shape", "8", ranks=2, code=1, says="no/such/folder")
    fails("bench", "multiply", "--grid", "2x2", "--shape", "8", "--device", "cpu", code=2, says="4")
    assert not os.path.exists("no") and "bench multiply" in run("bench", "multiply", "--help").out


main(globals())
