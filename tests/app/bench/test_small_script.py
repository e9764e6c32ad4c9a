"""tests/bench/gpu_small.sh on the CPU with a small product: medians of what ran, on a page; and what it makes of
`bench speeds`, which needs a GPU, from lines as that prints them."""

import os
import pathlib
import subprocess
import sys
import types

from lib import ENVIRONMENT, TESSERA, main

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_small  # noqa: E402


def test_page():
    page = pathlib.Path("page.md")
    page.write_text(
        "<!-- begin gpu-small -->\n<!-- end gpu-small -->\n<!-- begin gpu-auto -->\n<!-- end gpu-auto -->\n")
    options = ["--size", "50", "--turns", "2", "--device", "cpu", "--no-speeds", "--folder", os.getcwd(), "-o", page]
    process = subprocess.run(["bash", BENCH / "gpu_small.sh", *options], capture_output=True, text=True, timeout=100,
                             env=dict(ENVIRONMENT, TSR_BIN=TESSERA, TSR_COMMIT="abc"))
    assert process.returncode in (0, 1), process  # 1: this machine is slow
    text = page.read_text()
    assert "| f32 | blas | " in text and "| f64 | blas | " in text and "commit abc: medians of 2 turns" in text, text
    assert text.endswith("<!-- begin gpu-auto -->\n<!-- end gpu-auto -->\n"), text
    assert not [name for name in os.listdir(".") if name.startswith("tessera-bench-")], os.listdir(".")


def test_auto():
    said = ("auto, f32, ieee, of the fastest:  128 simt 1.00  256 cublas 0.96\nauto, f32, ieee, of the fastest:  127 "
            "simt 0.99  255 simt -\n")
    gpu_small.run = lambda command: (0.0, said if "speeds" in command
                                     else "rank 0 on x: GPU 7 #0, sm_90, code for 80, ...")
    args = types.SimpleNamespace(program="tessera", device="cuda")
    rows = gpu_small.speeds(args, pathlib.Path("."))
    assert rows == [["f32", "ieee", *row.split()]
                    for row in ("128 simt 1.00", "256 cublas 0.96", "127 simt 0.99", "255 simt -")], rows
    text, reached = gpu_small.speeds_text(args, rows)
    assert (not reached and "The least is 0.96" in text and "GPU 7, code for 80" in text and
            "| 127 | 128 | 255 | 256 |" in text), text
    rows[1][4] = "0.97"
    assert gpu_small.speeds_text(args, rows)[1], "0.97 is enough"


main(globals())
