"""tessera bench multiply on the host emulation of CUDA, under sanitizers: data pinned in host memory or made in the
device's, packed or not, in one part or several, on 1 to 3 ranks; and a warning of too few cores for a GPU."""
import json

from lib import main, run


def bench(*args, ranks):
    run("bench", "multiply", "--device", "cuda", "--repeat", "2", "--distribution", "integer", *args, "-o",
        "bench.json", ranks=ranks, timeout=120)
    with open("bench.json") as file:
        return json.load(file)


def test_paths():
    for ranks in (1, 3):
        for data in ("memory", "device"):
            for more in (["--kernel", "coarse"], ["--kernel", "tiled", "--type", "f64"]): # tiled takes padded operands
                figures = bench("--data", data, "--shape", "61x71x50", *more, ranks=ranks)
                record = figures["record"]
                assert record["kernel"] == more[1] and record["check"].endswith("elements of C exact"), record
                # nothing is read or written: the data is in memory, or made where it is used
                assert all(rank["read_bytes"] == rank["write_bytes"] == 0 for rank in record["ranks"]), record["ranks"]
                downloaded = sum(rank["download_bytes"] for rank in record["ranks"])
                assert downloaded == (0 if data == "device" else 61 * 71 * (8 if "f64" in more else 4)), record["ranks"]


def test_complex():
    """B is packed into twice the rows and columns, A is multiplied as it is, and C is the accumulators."""
    for ranks, data, kind in ((1, "device", "c64"), (3, "memory", "c64"), (2, "device", "c128")):
        figures = bench("--data", data, "--shape", "41x37x30", "--type", kind, "--kernel", "coarse", ranks=ranks)
        record = figures["record"]
        assert record["check"].endswith("elements of C exact") and record["c_type"] == kind, record
        assert sum(rank["flops"] for rank in record["ranks"]) == 8 * 41 * 37 * 30, record["ranks"]


def test_complex_kernels():
    """B is packed on the device, and what kernels err there is judged as complex numbers."""
    run("bench", "gemm", "--device", "cuda", "--shape", "32x16x16", "--type", "c64", "--kernel", "coarse,naive",
        "--batch", "2", "--repeat", "1", "--json", "gemm.json", timeout=300)
    run("bench", "accuracy", "--device", "cuda", "--size", "16", "--k", "16", "--type", "c128", "--kernel", "coarse",
        "--json", "accuracy.json", timeout=300)
    with open("gemm.json") as file:
        rows = json.load(file)["kernels"]
    assert {"coarse", "naive"} <= {row["kernel"] for row in rows}, rows
    assert all(0 < row["error"] <= row["error_bound"] for row in rows), rows
    with open("accuracy.json") as file:
        results = json.load(file)["results"]
    assert len(results) == 7 and all(row["component_max"] <= row["bound"] for row in results), results


def test_several_parts():
    for ranks, data in ((1, "memory"), (2, "memory"), (2, "device")):
        figures = bench("--data", data, "--shape", "130x110x90", "--kernel", "coarse", "--panel", "16",
                        *(["--memory", "40K"] if data == "memory" else []), ranks=ranks)
        record = figures["record"]
        assert record["check"].endswith("elements of C exact"), record
        assert data == "device" or record["super_blocks_m"] * record["super_blocks_n"] > 1, record


def test_explain():
    """Which kernel makes a product, by shape, and the record of a run in which it did."""
    rules = "simt -> tiled (m*n*k < 440^3, k < 440)"
    explain = ["bench", "gemm", "--device", "cuda", "--explain"]
    out = run(*explain, "--kernel", "simt", "--shape", "64", "--batch", "3").out
    assert "simt -> batched (a batch, m*n*k <= 640^3)" in out, out
    out = run(*explain, "--kernel", "simt", "--shape", "64").out
    assert out.splitlines()[1] == rules, out
    out = run(*explain, "--kernel", "simt,tiled", "--shape", "65").out
    assert out.splitlines()[1:3] == [rules + " -> checked (m, n or k is no multiple of 32)",
                                     "tiled cannot run: needs m, n, k that are multiples of 32"], out
    assert run(*explain, "--kernel", "simt", "--shape", "441").out.splitlines()[1] == "simt"

    record = bench("--data", "device", "--shape", "64x64x96", "--kernel", "simt", "--panel", "64", ranks=1)["record"]
    assert record["kernel_chosen"] == "simt" and record["kernel"] == "tiled", record


def test_few_cores():
    """A binding that was asked for and leaves a GPU too few cores is warned of once a job; others are not."""
    for policy, ranks in (("core", 1), ("core", 2), ("none", 1), ("", 1)):
        environment = {"OMPI_MCA_hwloc_base_binding_policy": policy}
        result = run("info", "--devices", "--device", "cuda", ranks=ranks, environment=environment)
        warnings = [line for line in result.err.splitlines() if "threads that feed a GPU" in line]
        assert len(warnings) == (policy == "core"), result
        for line in warnings:
            assert (line.startswith("tessera: warning: rank 0 is bound to ") and
                    line.endswith("mpirun --bind-to none")), line


main(globals())
