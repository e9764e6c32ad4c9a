"""tests/summary.py reads what ctest writes: every state of a test, over two runs, with its reasons.
Usage: test_summary.py CTEST"""

import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from summary import summary

CTEST = sys.argv[1]


def run(folder, **tests):
    """A run of ctest in a new folder: each test is a line of shell that skips with 77."""
    folder.mkdir()
    lines = ["set_tests_properties(slow PROPERTIES TIMEOUT 1)"] if "slow" in tests else []
    for name, command in reversed(tests.items()):
        lines[:0] = [
            f'add_test({name} "sh" "-c" "{command}")',
            f"set_tests_properties({name} PROPERTIES SKIP_RETURN_CODE 77)",
        ]
    (folder / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
    with open(folder / "tests.log", "w") as log:
        code = subprocess.run([CTEST, "--output-on-failure", "-j2"], cwd=folder, stdout=log, stderr=log).returncode
    return folder, code


with tempfile.TemporaryDirectory() as name:
    scratch = pathlib.Path(name)
    good, code = run(
        scratch / "good",
        a="exit 0",
        b="echo 'skipped: no torch'; exit 77",
        c="echo noise; echo 'skipped: no GPU: none is visible' >&2; exit 77",
        d="echo 'skipped: no GPU (none)'; exit 77",
        e="echo 'skipped: by nobody'; exit 0",
    )
    assert code == 0, (good / "tests.log").read_text()
    line, well = summary([good])
    assert line == "tests: 2 ran, 2 tests passed, 0 failed; 3 left out: no GPU 2, no torch 1" and well, line

    bad, code = run(
        scratch / "bad",
        a="exit 1",
        b="kill -SEGV \\$\\$",
        slow="sleep 20",
        d="exit 0",
        e="echo 'skipped: no Slurm'; exit 77",
    )
    assert code != 0
    line, well = summary([good, bad])
    assert (
        line == "tests: 6 ran, 3 tests passed, 3 failed; 4 left out: no GPU 2, no torch 1, no Slurm 1" and not well
    ), line

    silent, code = run(scratch / "silent", a="exit 0", b="exit 77")
    line, well = summary([silent])
    assert (
        code == 0 and not well and line == "tests: 1 ran, 1 tests passed, 0 failed; 1 left out: no reason given by b 1"
    ), line

    missing, code = run(scratch / "missing", a="exit 0")
    (missing / "CTestTestfile.cmake").write_text('add_test(a "no-such-program")\n')
    with open(missing / "tests.log", "w") as log:
        assert subprocess.run([CTEST], cwd=missing, stdout=log, stderr=log).returncode != 0
    line, well = summary([missing])
    assert line == "tests: 1 ran, 0 tests passed, 1 failed; 0 left out" and not well, line

    (scratch / "none").mkdir()  # ctest never came to write anything
    line, well = summary([scratch / "none"])
    assert line == "tests: 0 ran, 0 tests passed, 0 failed; 0 left out" and not well, line
