"""The benchmark tables: a section is replaced between its own markers only, and a missing marker is an error."""
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
import report

text = "head\n<!-- begin a -->\nold\n<!-- end a -->\nmiddle\n<!-- begin b -->\nkept\n<!-- end b -->\n"
once = report.replace_section(text, "a", "new\n")
assert once == text.replace("old", "new"), once
assert report.replace_section(once, "a", "new") == once
assert report.section(once, "a") == "new" and report.section(once, "b") == "kept"
for broken in ("", "<!-- begin a -->", "<!-- end a --> <!-- begin a -->"):
    try:
        report.replace_section(broken, "a", "new")
    except ValueError:
        continue
    raise AssertionError(f"no error for {broken!r}")
assert report.table(["x", "y"], [[1, 2]]) == "| x | y |\n|---|---|\n| 1 | 2 |"
assert report.rows("words\n" + report.table(["x", "y"], [[1, 2], [3, ""]])) == [["1", "2"], ["3", ""]]
assert report.rows("") == []
assert report.merge([["1", "a"], ["10", "b"]], [[10, "new"], [2, "c"]], 1) == [["1", "a"], ["2", "c"], ["10", "new"]]
for name in ("cpu-end-to-end", "gpu-ladder", "gpu-multiply", "gpu-multiply-ranks"):
    report.replace_section(report.PERFORMANCE.read_text(), name, "")
for name in ("strong-scaling", "weak-scaling", "plan-time"):
    report.replace_section((report.ROOT / "docs" / "scaling.md").read_text(), name, "")
