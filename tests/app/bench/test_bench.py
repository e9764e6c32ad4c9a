"""tessera bench on the CPU: tables, JSON, and wrong usage; and the pages its scripts write have their markers."""
import json
import math
import os
import pathlib
import sys

from lib import fails, main, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import report


def load(name):
    with open(name) as file:
        found = json.load(file)
    assert next(iter(found)) == "format" and found["format"] == 2, found
    return found


def test_quiet():
    """Nothing on the terminal; the figures are in the file, whose earlier content keeps its second name."""
    for what, *size in (["gemm", "--shape", "64"], ["memory", "--size", "64"],
                        ["accuracy", "--size", "16", "--k", "16"],
                        ["multiply", "--shape", "64", "--ranks"]):
        with open(f"quiet-{what}.json", "w") as file:
            file.write("precious")
        os.link(f"quiet-{what}.json", f"other-{what}")
        result = run("bench", what, *size, "--device", "cpu", "--quiet", "--json", f"quiet-{what}.json")
        assert open(f"other-{what}").read() == "precious", "another file was written"
        assert result.out == "" and result.err == "" and load(f"quiet-{what}.json")["version"], result


def test_gemm():
    out = run("bench", "gemm", "--all", "--shape", "96x64x33", "--device", "cpu", "--repeat", "2", "--json",
              "gemm.json", timeout=120).out
    bench = load("gemm.json")
    assert [bench[key] for key in "mnk"] == [96, 64, 33], bench
    names = [kernel["kernel"] for kernel in bench["kernels"]]
    assert "reference" in names and "blas" in names and all(name in out for name in names), out
    for kernel in bench["kernels"]:
        assert kernel["error"] <= kernel["error_bound"] and kernel["gflops"] > 0, kernel
    for narrow in ("f16", "bf16"):
        run("bench", "gemm", "--all", "--shape", "40x30x70", "--type", narrow, "--device", "cpu", "--repeat", "1",
            "--rounds", "3", "--json", "narrow.json")
        (kernel,) = load("narrow.json")["kernels"]
        assert kernel["kernel"] == "reference" and kernel["error"] <= kernel["error_bound"], kernel
    fails("bench", "gemm", "--type", "f16", "--device", "cpu", code=2, says=["f16 as f32", "--kernel"])
    fails("bench", "gemm", "--all", "--kernel", "blas", code=2, says="--all")
    fails("bench", "gemm", "--shape", "2x3", code=2, says="2x3")


def test_gemm_batch():
    out = run("bench", "gemm", "--shape", "20x30x40", "--batch", "7", "--kernel", "reference", "--device", "cpu",
              "--repeat", "2", "--json", "batch.json").out
    bench = load("batch.json")
    assert "k = 40, a batch of 7 on" in out and bench["batch"] == 7, out
    for kernel in bench["kernels"]:
        assert math.isclose(kernel["gflops"], 7 * 2 * 20 * 30 * 40 / kernel["seconds"] / 1e9, rel_tol=1e-4), kernel
        assert kernel["error"] <= kernel["error_bound"], kernel
    fails("bench", "gemm", "--batch", "0", code=2, says="--batch")


def test_gemm_complex():
    """8 m n k operations: one product of twice the reals along n and k, with B's elements as squares."""
    cpu = ["bench", "gemm", "--device", "cpu", "--repeat", "2"]
    for kind, kernel, batch in (("c64", "blas", 1), ("c64", "reference", 3), ("c128", "reference", 1),
                                ("c128", "blas", 2)):
        out = run(*cpu, "--shape", "33x20x17", "--type", kind, "--kernel", kernel, "--batch", batch, "--json",
                  "complex.json").out
        bench = load("complex.json")
        assert (bench["type"], bench["m"], bench["n"], bench["k"]) == (kind, 33, 20, 17), bench
        assert f"gemm {kind}, m = 33, n = 20, k = 17 as reals" in out, out
        for row in bench["kernels"]:
            assert math.isclose(row["gflops"], batch * 8 * 33 * 20 * 17 / row["seconds"] / 1e9, rel_tol=1e-4), row
            assert 0 < row["error"] <= row["error_bound"], row
    run(*cpu, "--shape", "4x4x34", "--kernel", "blas", "--json", "real.json")
    run(*cpu, "--shape", "4x4x17", "--type", "c64", "--kernel", "blas", "--json", "twice.json")
    assert load("real.json")["kernels"][0]["error_bound"] == load("twice.json")["kernels"][0]["error_bound"]
    fails(*cpu, "--type", "i16", code=2, says=["i16", "c128"])


def test_gemm_explain():
    """What makes a product, and why: printed at once, however large it is."""
    out = run("bench", "gemm", "--explain", "--shape", "1000000", "--device", "cpu").out.splitlines()
    assert out[0].startswith("gemm f32, m = 1000000, ") and len(out) == 3, out
    assert out[1:] == ["auto -> blas (by rank: nothing was measured on such a device)", "blas"], out
    out = run("bench", "gemm", "--explain", "--kernel", "reference", "--device", "cpu").out.splitlines()
    assert out[1:] == ["reference", "blas"], out
    out = run("bench", "gemm", "--explain", "--all", "--type", "f16", "--device", "cpu").out.splitlines()
    assert out[1:] == ["reference"], out
    fails("bench", "gemm", "--explain", "--json", "none.json", code=2, says="--explain prints text alone")
    fails("bench", "gemm", "--explain", "--quiet", code=2, says="leave out --quiet")


def test_memory():
    out = run("bench", "memory", "--size", "160", "--device", "cpu", "--repeat", "2", "--json", "memory.json", ranks=2,
              timeout=120).out
    bench = load("memory.json")
    assert bench["n"] == 160 and bench["copy_gbs"] > 0, bench
    rows = {row["kernel"]: row for row in bench["kernels"]}
    assert rows["copy-device"]["copy_share"] == 1 and "pack-f32-transposed" in rows and "pack-f16" in rows, rows.keys()
    assert rows["copy-device"]["bytes"] == 2 * 160 * 160 * 4 and rows["pack-f16"]["bytes"] == 6 * 160 * 160, rows
    for row in rows.values():
        assert math.isclose(row["gbs"], row["bytes"] / row["seconds"] / 1e9, rel_tol=1e-4), row
        assert row["kernel"] in out, out
    assert not any(row["group"] == "transfer" for row in rows.values()), "the CPU's memory is the host's"
    for size in ("33", "0", "x"):
        fails("bench", "memory", "--size", size, code=2, says=size)


def test_accuracy():
    run("bench", "accuracy", "--device", "cpu", "--size", "40", "--k", "1,64,1000", "--json", "accuracy.json",
        timeout=120)
    bench = load("accuracy.json")
    assert bench["type"] == "f32" and bench["eps"] == 2.0**-23 and bench["samples"] == 40, bench
    inputs = {result["input"] for result in bench["results"]}
    assert inputs == {"uniform", "normal", "wide", "cancelling", "graded", "sparse", "banded"}, inputs
    assert len(bench["results"]) == len(inputs) * 3 * len({result["kernel"] for result in bench["results"]}), bench
    for result in bench["results"]:
        assert 0 <= result["component_median"] <= result["component_max"] <= result["bound"], result
        assert 0 <= result["relative_median"] <= result["relative_max"], result
    reference = [result for result in bench["results"] if result["kernel"] == "reference"]
    assert (len(reference) == 3 * len(inputs) and
            all(result["component_max"] <= 0.5 for result in reference)), "sums in double, rounded once"


def test_accuracy_complex():
    """Absolute values of complex numbers; sums in double that are rounded once per part err half an eps of each."""
    for kind, eps in (("c64", 2.0**-23), ("c128", 2.0**-52)):
        run("bench", "accuracy", "--type", kind, "--device", "cpu", "--size", "30", "--k", "1,200", "--json",
            "accuracy.json", timeout=120)
        bench = load("accuracy.json")
        assert bench["type"] == kind and bench["eps"] == eps and len(bench["results"]) == 7 * 2 * 3, bench
        for result in bench["results"]:
            assert 0 <= result["component_median"] <= result["component_max"] <= result["bound"], result
            once = result["kernel"] == "reference" or result["k"] == 1
            assert not once or result["component_max"] <= (0.5 if result["kernel"] == "reference" else 2.0), result
            assert result["input"] in ("sparse", "banded") or result["component_max"] > 0, result


def test_accuracy_options():
    run("bench", "accuracy", "--device", "cpu", "--size", "16", "--k", "32", "--type", "f64", "--input", "wide",
        "--phi", "5", "--kernel", "blas",
        "--json", "one.json")
    results = load("one.json")["results"]
    assert [(result["input"], result["k"], result["kernel"]) for result in results] == [("wide", 32, "blas")], results
    for wrong in (["--k", "1,,2"], ["--k", "0"], ["--k", "8;9"], ["--phi", "7"], ["--phi", "nan"], ["--input", "zipf"],
                  ["--type", "i16"],
                  ["--kernel", "fastest"]):
        fails("bench", "accuracy", *wrong, "--device", "cpu", code=2,
              says=wrong[0] if wrong[0] in ("--k", "--phi", "--type") else wrong[1])


def test_speeds():
    fails("bench", "speeds", code=2, says="-o FILE")
    assert "auto" in run("bench", "speeds", "--help").out


def test_usage():
    fails("bench", code=2, says=["gemm", "multiply", "memory", "accuracy", "speeds"])
    fails("bench", "disk", ranks=2, code=2, says=["'disk'", "memory"])
    fails("bench", "--size", "64", "memory", code=2, says="'--size'")
    fails("bench", "memory", "64", code=2, says="'64'")
    for what in ("gemm", "memory", "accuracy"):
        assert f"tessera bench {what}" in run("bench", what, "--help").out
        fails("bench", what, "--device", "cpu", "--json", "no/such/folder/x.json", code=1, says="no/such/folder")
        assert not os.path.exists("no")


def test_pages():
    for name in ("memory", "ladder", "targets", "accuracy"):
        report.replace_section(report.page(f"gpu_{name}").read_text(), f"gpu-{name}", "")


main(globals())
