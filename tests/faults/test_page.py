"""docs/reliability.md names tests that there are, has a figure for each promise, and lists what known.py knows.
Usage: test_page.py, in the folder of a build"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "faults")]
import known
import report

page = (ROOT / "docs" / "reliability.md").read_text()
# Not by ctest, which would begin its log anew, where tests/summary.py reads why tests were left out.
files = "".join(file.read_text() for file in pathlib.Path("tests").rglob("CTestTestfile.cmake"))
there = set(re.findall(r"^add_test\((?:\[=*\[)?(\w+)", files, re.M)) | {"faults_corpus"}  # in the build with sanitizers

rows = report.rows(page.partition("## Calls that fail")[0])
assert len(rows) > 10 and all(len(row) == 3 and all(row) for row in rows), rows
named = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
assert (named and
        set(named) <= there), f"docs/reliability.md names tests that there are not: {sorted(set(named) - there)}"
for name in ("faults", "corpus"):
    assert report.rows(report.section(page, name)), f"no table '{name}': run tests/run.sh --all-faults"

section = re.search(r"^## Known\n(.*?)^## ", page, re.M | re.S)[1]
assert ("Nothing:" in section) == (not known.KNOWN), "the section 'Known' and known.py do not agree"
for pattern in known.KNOWN:
    assert f"`{pattern}`" in section, f"not in the section 'Known': {pattern}"
