"""tests/bench/resume_cost.sh on the CPU with small products: a row on the page, which rows of other sizes stay on; and
the size it chooses."""
import os
import pathlib
import re
import subprocess
import sys
import types

from lib import ENVIRONMENT, TESSERA, main

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import resume_cost  # noqa: E402


def script(*options):
    process = subprocess.run(["bash", BENCH / "resume_cost.sh", "--device", "cpu", "--runs", "2", "--folder",
                              os.getcwd(), "-o", "page.md", *options], capture_output=True, text=True, timeout=100,
                             env=dict(ENVIRONMENT, TSR_BIN=TESSERA, TSR_COMMIT="abc"))
    assert not [name for name in os.listdir(".") if name.startswith("tessera-bench-")], os.listdir(".")
    return process


def test_page():
    page = pathlib.Path("page.md")
    for size, more in (("96", ()), ("64", ("--type", "f32", "--ranks", "2"))):
        process = script("--size", size, *more)
        assert process.returncode in (0, 1), process  # 1: so short a run
    text = page.read_text()
    assert re.search(r"\| 1 \| [0-9]+ \| 96 \| 24 \| f64 \| [^|]+ \| [0-9.]+ \|", text), text
    assert re.search(r"\| 2 \| [0-9]+ \| 64 \| 16 \| f32 \| [^|]+ \| [0-9.]+ \|", text), text
    assert text.count("| abc |") == 2 and "medians of 2 runs each, in turns" in text, text
    process = script("--size", "96", "--kernel", "none-such")
    assert process.returncode == 1 and "none-such" in process.stderr, process
    assert page.read_text() == text, "a run that failed is no figure"


def test_choose():
    """From runs whose time grows with the size: long enough, and not far beyond; as far as the disk has room."""
    for power, scale, limit in ((2, 1e-7, 10**9), (3, 1e-12, 10**9), (2.5, 1e-9, 10**9), (2, 1e-12, 10000)):
        made = []
        resume_cost.generate = lambda args, folder, size: made.append(size)
        resume_cost.multiply = lambda args, folder: (scale * made[-1]**power, {})
        resume_cost.most = lambda args, folder: limit
        size = resume_cost.choose(types.SimpleNamespace(seconds=20), pathlib.Path("."))
        seconds = scale * size**power
        assert size == made[-1] <= limit and len(made) < 10, made
        assert size == limit or 20 <= seconds <= 40, (size, seconds, made)


main(globals())
