"""tests/bench/gpu_engine.sh on the CPU with small sizes: rows of the cases that run replace theirs, others stay, and
the page is written after each case."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from lib import ENVIRONMENT, TESSERA, main

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_engine
import report

PAGE = pathlib.Path("page.md").resolve()


def environment(**more):
    return dict(ENVIRONMENT, TSR_BIN=TESSERA, TSR_DEVICE="cpu", TSR_PAGE=str(PAGE), TSR_SHM=os.getcwd(),
                TSR_DISK=os.getcwd(), TSR_COMMIT="abc", **more)


def engine(*cases, code=0, **more):
    """The table's rows afterwards, by case and what, and what was printed."""
    process = subprocess.run(["bash", BENCH / "gpu_engine.sh", "2", *cases], capture_output=True, text=True,
                             timeout=200, env=environment(**more))
    assert process.returncode == code, process.stdout + process.stderr
    rows = [dict(zip(gpu_engine.HEADER, row)) for row in report.rows(report.section(PAGE.read_text(), "gpu-engine"))]
    return {(row["case"], row["what"]): row for row in rows}, process.stdout


def folders():
    return [name for name in os.listdir(".") if name.startswith("tessera-engine")]


def test_cases():
    PAGE.write_text("before\n<!-- begin gpu-engine -->\n<!-- end gpu-engine -->\nafter\n")
    rows, out = engine("device-simt=96", "tall=300x20x10")
    assert list(rows) == [("device-simt", "of the kernel alone"), ("tall", "of the limit")], rows
    row = rows["device-simt", "of the kernel alone"]
    assert (row["m × n × k"] == "96 × 96 × 96" and row["GPUs"] == "2" and row["check"] == "PASSED" and
            row["commit"] == "abc"), row
    assert (row["reached"] == ("yes" if float(row["ratio"].strip("*")) >= 0.95 else "no") and
            "tessera bench multiply" in row["command"]), row
    assert out.count("engine: ") == 2, out
    assert "; making A and B alone " in row["beside"], row
    first = rows["tall", "of the limit"]
    assert " lane of rank " in first["beside"], first
    rows, _ = engine("startup=64", "device-simt=80")
    assert list(rows) == [("device-simt", "of the kernel alone"), ("tall", "of the limit"),
                          ("startup", "start-up, main to first read")], rows
    assert (rows["tall", "of the limit"] == first and
            rows["device-simt", "of the kernel alone"]["m × n × k"] == "80 × 80 × 80"), rows
    assert float(rows["startup", "start-up, main to first read"]["measured"].split()[0]) > 0, rows
    assert PAGE.read_text().startswith("before\n") and PAGE.read_text().endswith("after\n")
    assert not folders(), folders()


def test_files():
    """The limit and start-up stand before the rows beside the peer; C is new in every run, and the room for it is
    shown."""
    rows, out = engine("files=64")
    assert [what for case, what in rows if case == "files"][:2] == ["of the limit", "start-up, main to first read"], \
        rows
    assert "files: before: " in out and "files: after: " in out and "MemAvailable" in out, out


def test_failures():
    """A case that fails leaves its row and the others' as they were, and the script says so."""
    before = PAGE.read_text()
    rows, out = engine("memory-simt=30000000", code=1)
    assert "memory-simt: failed" in out and PAGE.read_text() == before, out
    engine("no-such-case", code=1)


def test_page_is_made_or_refused():
    """A page that is not there begins as a copy; one without the markers is refused before anything is measured."""
    PAGE.unlink()
    rows, _ = engine("tall=30x20x10")
    assert ("tall", "of the limit") in rows and "# The engine on GPUs" in PAGE.read_text(), rows
    page = pathlib.Path("plain.md")
    page.write_text("no markers\n")
    process = subprocess.run(["bash", BENCH / "gpu_engine.sh", "2", "tall=30x20x10"], capture_output=True, text=True,
                             timeout=60, env=dict(environment(), TSR_PAGE=str(page.resolve())))
    assert (process.returncode == 1 and "no markers '<!-- begin gpu-engine -->'" in process.stderr and
            "bench" not in process.stdout), process.stdout + process.stderr


def record_of(**more):
    return dict({"m": 8, "n": 8, "k": 8, "rank_count": 2, "kernel": "simt", "check": "PASSED",
                 "ranks": [{"rank": 0, "device": "x", "upload_seconds": 2.0, "upload_bytes": 3e9}]}, **more)


def test_not_compared():
    """What was not measured, or on other GPUs than ours, gives no ratio but the reason; a lane that moves bytes says
    how fast."""
    options = type("Options", (), {"device": "cuda", "ranks": 2})
    figures = {"record": record_of(), "seconds": [1.0], "tflops": 1.0, "first_share": 0.9,
               "limit": {"lane": "upload", "rank": 0, "seconds": 2.0, "share": 0.95},
               "alone": {"ratio": None, "tflops": None, "not_measured": "no memory"},
               "peer": {"ratio": None, "devices": 8, "blocks": []}}
    spans = [(0, 0, 10), (0, 10, 10), (1, 0, 10), (1, 15, 5)] # rank, microseconds: rank 1 waits a quarter of its time
    folder = pathlib.Path(".").resolve()
    (folder / "trace.json").write_text(json.dumps(
        {"traceEvents": [{"name": "multiply C", "ph": "X", "pid": rank, "ts": begin, "dur": took} for rank, begin,
                         took in spans]}))
    old, gpu_engine.bench = gpu_engine.bench, lambda *_: (figures, "command", "1 TFLOP/s")
    try:
        case = gpu_engine.Case(options, "x", "8", 2)
        gpu_engine.beside_kernel(case, None, "simt", 0.9)
        gpu_engine.beside_cublasxt(case, folder, "simt", "f32", 1.05)
        gpu_engine.beside_limit(case, None, 0.9)
        figures["alone"] = {"ratio": 0.5, "tflops": 2.0, "m": 8, "n": 8, "k": 8, "making_seconds": 0.25}
        gpu_engine.beside_kernel(case, None, "simt", 0.9)
    finally:
        gpu_engine.bench = old
    rows = [dict(zip(gpu_engine.HEADER, row)) for row in case.rows]
    assert [(row["ratio"], row["reached"]) for row in rows] == [("-", "no"), ("-", "no"), ("**0.900**", "yes"),
                                                                ("0.750", "no"), ("**0.950**", "yes"),
                                                                ("0.500", "no")], rows
    assert ("no memory" in rows[0]["beside"] and "8 GPUs" in rows[1]["beside"] and
            rows[4]["beside"].endswith("2 s, 1.5 GB/s")), rows
    assert rows[3]["measured"] == "2 products a rank" and rows[3]["beside"] == "longest gap 0.005 ms", rows[3]
    assert rows[5]["beside"].endswith("making A and B alone 0.25 s: 0.250 of both one after the other"), rows[5]


def run_main(measure, *arguments):
    """gpu_engine.main() with one case of ours, in this process; returns its exit."""
    old, argv = gpu_engine.CASES["tall"], sys.argv
    gpu_engine.CASES["tall"] = ("8", None, "shm", measure)
    sys.argv = ["gpu_engine.py", "--ranks", "2", "--device", "cpu", "--disk", ".", "--shm", ".", "--page", str(PAGE),
                *arguments, "tall"]
    try:
        gpu_engine.main()
    except SystemExit as end:
        return end.code
    finally:
        gpu_engine.CASES["tall"], sys.argv = old, argv
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_rows_before_a_failure():
    """A row that was made before any exception is written; a process that takes too long is one."""
    def measure(case, folder):
        case.at_least("half of it", "1 s", "-", 2.0, 1, record_of(), "none")
        gpu_engine.run_process(["sleep", "60"], 0.2)

    began = time.monotonic()
    assert run_main(measure) == "failed: tall" and time.monotonic() - began < 30
    assert "half of it" in PAGE.read_text() and not folders(), folders()


def test_ending():
    """SIGTERM takes the folder and the ranks along; what a killed run left goes at the start of the next, what a living
    one has stays."""
    # above the most a process can have
    stale, living = pathlib.Path("tessera-engine.4194999.abc"), pathlib.Path(f"tessera-engine.{os.getpid()}.abc")
    stale.mkdir(), living.mkdir()
    process = subprocess.Popen(["bash", BENCH / "gpu_engine.sh", "2", "files=1500"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, env=environment())
    assert "removing" in process.stdout.readline() and "before: " in process.stdout.readline()
    assert not stale.exists() and living.exists(), folders()
    time.sleep(0.3)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143, process.returncode
    living.rmdir()
    assert not folders(), folders()


def test_touching():
    """A process that touches memory and is killed is not passed over in silence."""
    process = subprocess.run(["bash", "-c",
                              f"ulimit -v 4000000; TSR_TOUCH=1 bash {BENCH}/gpu_engine.sh 2 no-such-case"],
                             capture_output=True, text=True, timeout=60, env=environment())
    assert "less memory than TSR_TOUCH=1 GiB" in process.stderr, process.stderr


def test_page():
    report.replace_section(report.page("gpu_engine").read_text(), "gpu-engine", "")
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
