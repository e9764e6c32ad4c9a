"""tests/bench/gpu_engine.sh on the CPU with small sizes: rows of the cases that run replace theirs, others stay, and the page is written after each case."""
import os
import pathlib
import subprocess
import sys

from lib import ENVIRONMENT, TESSERA, main

BENCH = pathlib.Path(__file__).resolve().parents[1] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_engine
import report

PAGE = pathlib.Path("page.md").resolve()


def engine(*cases, code=0):
    """The table's rows afterwards, by case and what, and what was printed."""
    environment = dict(ENVIRONMENT, TSR_BIN=TESSERA, TSR_DEVICE="cpu", TSR_PAGE=str(PAGE), TSR_SHM=os.getcwd(), TSR_DISK=os.getcwd(), TSR_COMMIT="abc")
    process = subprocess.run(["bash", BENCH / "gpu_engine.sh", "2", *cases], capture_output=True, text=True, timeout=200, env=environment)
    assert process.returncode == code, process.stdout + process.stderr
    rows = [dict(zip(gpu_engine.HEADER, row)) for row in report.rows(report.section(PAGE.read_text(), "gpu-engine"))]
    return {(row["case"], row["what"]): row for row in rows}, process.stdout


def test_cases():
    PAGE.write_text("before\n<!-- begin gpu-engine -->\n<!-- end gpu-engine -->\nafter\n")
    rows, out = engine("device-simt=96", "tall=300x20x10")
    assert list(rows) == [("device-simt", "of the kernel alone"), ("tall", "of the limit")], rows
    row = rows["device-simt", "of the kernel alone"]
    assert row["m × n × k"] == "96 × 96 × 96" and row["GPUs"] == "2" and row["check"] == "PASSED" and row["commit"] == "abc", row
    assert row["reached"] == ("yes" if float(row["ratio"].strip("*")) >= 0.95 else "no") and "tessera bench multiply" in row["command"], row
    assert out.count("engine: ") == 2, out
    first = rows["tall", "of the limit"]
    rows, _ = engine("startup=64", "device-simt=80")
    assert list(rows) == [("device-simt", "of the kernel alone"), ("tall", "of the limit"), ("startup", "start-up, main to first read")], rows
    assert rows["tall", "of the limit"] == first and rows["device-simt", "of the kernel alone"]["m × n × k"] == "80 × 80 × 80", rows
    assert float(rows["startup", "start-up, main to first read"]["measured"].split()[0]) > 0, rows
    assert PAGE.read_text().startswith("before\n") and PAGE.read_text().endswith("after\n")
    assert not [name for name in os.listdir(".") if name.startswith("tessera-engine")], os.listdir(".")


def test_failures():
    """A case that fails leaves its row and the others' as they were, and the script says so."""
    before = PAGE.read_text()
    rows, out = engine("memory-simt=30000000", code=1)
    assert "memory-simt: failed" in out and PAGE.read_text() == before, out
    engine("no-such-case", code=1)


def test_page():
    report.replace_section(report.PERFORMANCE.read_text(), "gpu-engine", "")
    for name in gpu_engine.CASES:
        assert gpu_engine.chosen([f"{name}=7"]) == {name: "7"}
    assert list(gpu_engine.chosen([])) == list(gpu_engine.CASES)


def test_direct():
    """The plain reads and writes beside `disk` move every byte."""
    length = 3 * gpu_engine.BLOCK + 8192
    assert gpu_engine.direct("plain", True, length) > 0
    data = pathlib.Path("plain").read_bytes()
    assert len(data) == length and all(any(data[at:at + 4096]) for at in range(0, length, 4096)), len(data)
    assert gpu_engine.direct("plain", False, length) > 0


main(globals())
