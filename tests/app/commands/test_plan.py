"""tessera plan: text and JSON agree, the sample machine file is read, and what is wrong is refused before anything is
predicted."""
import json
import os
import pathlib
import re

from lib import fails, main, run

SAMPLE = pathlib.Path(__file__).resolve().parents[3] / "jobs" / "h200_example.machine"
PRODUCT = ["--shape", "65536", "--machine", SAMPLE]


def plan(*args, **more):
    out = run("plan", *args, "--json", "plan.json", **more).out
    with open("plan.json") as file:
        said = json.load(file)
    assert next(iter(said)) == "format" and said["format"] == 2, said
    return out, said


def test_text_and_json():
    out, said = plan(*PRODUCT, "--ranks", 64)
    p, q, r = said["grid"]
    assert f"{p} x {q} x {r} over m, n, k: {said['ranks_at_work']} of 64 ranks" in out, out
    assert said["schedule"] == "summa" and "ranks, schedule summa" in out, out
    assert p * q * r == said["ranks_at_work"] <= said["ranks"] == 64 and said["ranks_a_node"] == 4, said
    assert (said["m"], said["n"], said["k"], said["type"]) == (65536, 65536, 65536, "f32"), said
    for lane in ("read", "upload", "exchange", "pack", "multiply", "download", "write"):
        assert (re.search(rf"^  {lane} ", out, re.M) and
                0 <= said["lanes"][lane]["seconds"] <= said["seconds"]), (lane, out)
    flops = 2 * 65536**3
    assert said["lanes"]["multiply"]["flops"] * 64 >= flops * 0.999, said
    assert abs(said["efficiency"] - flops / (64 * 215e12) / said["seconds"]) < 1e-3, said
    assert f"bounded by {said['bounded_by']}" in out and "a prediction, nothing was run" in out, out
    assert said["bounded_by"] == max(said["lanes"], key=lambda lane: said["lanes"][lane]["seconds"]), said
    assert said["exchange_bytes"] == said["lanes"]["exchange"]["bytes"] >= said["exchange_bound_bytes"] > 0, said
    assert abs(said["exchange_ratio"] - said["exchange_bytes"] / said["exchange_bound_bytes"]) < 1e-4, said
    assert said["fewest_bytes"]["exchange_bytes"] <= said["exchange_bytes"], said
    assert (f"{said['exchange_ratio']:.2f} times the least any schedule needs on 64 ranks" in out and
            "Al Daas" in out), out
    assert "kernel workspace" in out, out
    assert "device in all" in out and said["device_bytes"] <= 0.9 * 141e9, out


def test_reproducible():
    """Ranks that split k have whole ranges of it, and hand on their sums; panels are whole ranges of k."""
    shape = ["--shape", "1024x1024x1000000", "--machine", SAMPLE, "--ranks", 8]
    said = plan(*shape)[1]
    assert said["grid"][2] > 1 and "reproducible" not in said, said
    out, said = plan(*shape, "--reproducible")
    assert said["grid"][2] > 1 and said["panel"] == 16384 and said["reproducible"], said
    assert "128 rows and 128 columns, k at multiples of 16384" in out, out
    assert "ranges stay apart on a rank; sums go from rank to rank in the order of k, and the last of " in out, out
    said = plan(*shape, "--reproducible", "--grid", "4x2x1")[1]
    assert said["grid"][2] == 1 and said["panel"] % 16384 == 0, said
    fails("plan", "--shape", "128x128x40000", *shape[2:], "--reproducible", "--grid", "2x1x4", code=2,
          says=["k = 40000 has 3 parts", "use --grid 2x1x3"])
    fails("plan", *shape, "--reproducible", "--panel", "1000", code=2, says="use --panel 16384")


def test_choices():
    forced = plan(*PRODUCT, "--ranks", 8, "--grid", "8x1", "--panel", 512)[1]
    assert forced["grid"] == [8, 1, 1] and forced["panel"] == 512, forced
    chosen = plan(*PRODUCT, "--ranks", 8)[1]
    assert (chosen["seconds"] <= 1.02 * forced["seconds"] and
            chosen["exchange_bytes"] < forced["exchange_bytes"]), (chosen, forced)
    small = plan(*PRODUCT, "--ranks", 8, "--memory", "2G", "--host-memory", "1G")[1]
    assert (small["device_bytes"] <= 2 * 2**30 and small["host_bytes"] <= 2**30 and
            small["super_blocks"] != [1, 1]), small
    double = plan(*PRODUCT, "--ranks", 8, "--type", "f64")[1]
    assert (double["lanes"]["write"]["bytes"] == 2 * chosen["lanes"]["write"]["bytes"] and
            double["lanes"]["multiply"]["seconds"] > chosen["lanes"]["multiply"]["seconds"]), double
    half = plan(*PRODUCT, "--ranks", 8, "--type", "bf16", "--grid", "2x4")[1]
    assert half["lanes"]["read"]["bytes"] * 2 == plan(*PRODUCT, "--ranks", 8, "--grid",
                                                      "2x4")[1]["lanes"]["read"]["bytes"], half
    one = plan(*PRODUCT, "--ranks", 1)[1]
    assert one["exchange_bytes"] == 0 and one["exchange_ratio"] is None and one["ranks_a_node"] == 1, one


def test_scaling():
    """Each line is what `plan` says of that number of GPUs alone."""
    out, said = plan(*PRODUCT, "--ranks", 24, "--scaling")
    assert [one["ranks"] for one in said["scaling"]] == [1, 2, 4, 8, 16, 24], said["scaling"]
    assert said["flops"] == 2 * 65536**3, said
    table = out[out.index("\n  GPUs "):].strip().splitlines()[1:]
    for one, line in zip(said["scaling"], table):
        alone = plan(*PRODUCT, "--ranks", one["ranks"])[1]
        assert {key: alone[key] for key in ("ranks", "grid", "seconds", "efficiency", "bounded_by")} == {
            key: value for key, value in one.items() if key != "lanes"}, (one, alone)
        assert one["lanes"] == {name: lane["seconds"] for name, lane in alone["lanes"].items()}, (one, alone)
        grid = " x ".join(map(str, one["grid"]))
        assert line.split()[0] == str(one["ranks"]) and f" {grid} " in line and line.endswith(one["bounded_by"]), line
        assert float(line.split()[6]) == float(f"{one['seconds']:.4g}"), line
    assert len(table) == 6 and "scaling" not in plan(*PRODUCT, "--ranks", 24)[1], table
    # a grid is for the number that was asked for
    assert plan(*PRODUCT, "--ranks", 8, "--grid", "8x1", "--scaling")[1]["scaling"][1]["ranks"] == 2
    fails("plan", *PRODUCT, "--ranks", 8, "--memory", "16", "--scaling", code=1, says="or more")


def test_files():
    """On a disk C goes in whole rows; in memory, the default, it is cut both ways."""
    memory, disk = (plan("--shape", 24576, "--machine", SAMPLE, "--ranks", 2, "--files", kind)
                    for kind in ("memory", "disk"))
    assert (memory[1]["files"] == "memory" and memory[1]["super_blocks"][1] > 1 and
            "files in memory" in memory[0]), memory
    assert (disk[1]["files"] == "disk" and disk[1]["super_blocks"][1] == disk[1]["grid"][1] == 1 and
            disk[1]["super_blocks"][0] > 1 and "files on a disk" in disk[0]), disk
    assert plan("--shape", 24576, "--machine", SAMPLE, "--ranks", 2) == memory
    # what is read from memory goes on in portions, and from a disk in whole panels
    memory, disk = (plan("--shape", 24576, "--machine", SAMPLE, "--ranks", 1, "--files", kind)[1]["host_bytes"]
                    for kind in ("memory", "disk"))
    assert memory <= 256 << 20 < disk, (memory, disk)


def test_under_mpirun():
    assert run("plan", *PRODUCT, "--ranks", 64, ranks=2).out == run("plan", *PRODUCT, "--ranks", 64).out


def test_usage():
    fails("plan", *PRODUCT, code=2, says="--ranks N")
    fails("plan", "--ranks", 4, "--machine", SAMPLE, code=2, says="--shape")
    fails("plan", "--ranks", 4, "--shape", 4, code=2, says="--machine FILE")
    wrong = [("--shape", "3x4"), ("--shape", "0"), ("--shape", "x"), ("--ranks", "0"), ("--ranks", "65537"),
             ("--ranks", "many"), ("--type", "i8"), ("--type", "f31"),
             ("--files", "tape"), ("--memory", "lots"), ("--host-memory", "0"), ("--grid", "2"), ("--panel", "0")]
    for option, value in wrong:
        fails("plan", *PRODUCT, "--ranks", 4, option, value, code=2, says=value)
    fails("plan", *PRODUCT, "--ranks", 4, "--grid", "4x4", ranks=2, code=2, says="needs 16 ranks")
    fails("plan", *PRODUCT, "--ranks", 4, "extra", code=2, says="extra")
    fails("plan", "--shape", "4000000000x4000000000x1", "--machine", SAMPLE, "--ranks", 4, code=1, says="63 bits")
    fails("plan", *PRODUCT, "--ranks", 4, "--memory", "16", code=1, says="or more")
    fails("plan", *PRODUCT, "--ranks", 4, "--json", "no/such/folder/p.json", code=1, says="no/such/folder")


def test_another_name():
    """What has a second name under the file's keeps its content."""
    with open("precious", "w") as file:
        file.write("precious")
    os.link("precious", "p.json")
    run("plan", *PRODUCT, "--ranks", 4, "--json", "p.json")
    assert open("precious").read() == "precious" and json.load(open("p.json")), os.listdir(".")
    assert sorted(n for n in os.listdir(".") if "p.json" in n) == ["p.json"], os.listdir(".")
    os.remove("p.json")


def test_machine_files():
    good = SAMPLE.read_text()

    def write(text):
        with open("own.machine", "w") as file:
            file.write(text)
        return ["--shape", "65536", "--ranks", 4, "--machine", "own.machine"]

    run("plan", *write(good))
    line = 1 + good[: good.index("gpu_link_GBps")].count("\n")
    fails("plan", *write(good.replace("gpu_link_GBps", "gpu_link")), code=1,
          says=[f"own.machine:{line}:", "'gpu_link'", "gpu_link_GBps"])
    fails("plan", *write(good.replace("= 397", "= fast")), code=1, says=[f"own.machine:{line}:", "'fast'"])
    fails("plan", *write(re.sub("gpu_link_GBps.*\n", "", good)), code=1,
          says=["own.machine:", "without key 'gpu_link_GBps'"])
    fails("plan", *write(good + "gpus_per_node = 8\n"), code=1, says=["own.machine:", "already"])
    fails("plan", *write(re.sub("f64_tflops.*\n", "", good)), "--type", "f64", code=1, says="f64_tflops")
    fails("plan", "--shape", 8, "--ranks", 1, "--machine", "missing.machine", ranks=2, code=1, says="missing.machine")
    assert os.path.exists("own.machine")


main(globals())
