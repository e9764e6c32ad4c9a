"""The benchmark tables: a section is replaced between its own markers only, and a missing marker is an error."""
import pathlib
import sys
import xml.etree.ElementTree

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
pages = {"cpu_end_to_end": ["cpu-end-to-end"], "gpu_ladder": ["gpu-ladder"], "gpu_binding": ["gpu-binding"],
         "gpu_beside": ["gpu-beside"], "gpu_multiply": ["gpu-multiply", "gpu-multiply-ranks"],
         "gpu_small": ["gpu-small", "gpu-auto"], "gpu_batched": ["gpu-batched"], "gpu_complex": ["gpu-complex"],
         "gpu_gram": ["gpu-gram"]}
for script, names in pages.items():
    assert (report.ROOT / "tests" / "bench" / f"{script}.py").exists(), script
    for name in names:
        report.replace_section(report.page(script).read_text(), name, "")
for name in ("strong-scaling", "weak-scaling", "plan-time"):
    report.replace_section((report.ROOT / "docs" / "scaling.md").read_text(), name, "")

# The README's first figures, the first tables of docs/performance.md and the picture say what docs/measurements says.
import overview

stale = "older than docs/measurements: run tests/bench/overview.py"
assert report.section(overview.PAGE.read_text(), "overview") == overview.text(), f"{overview.PAGE} is {stale}"
said = report.section(overview.README.read_text(), "file-to-file")
assert said == overview.sentence(), f"{overview.README} is {stale}"
assert overview.PICTURE.read_text() == overview.picture(), f"{overview.PICTURE} is {stale}"
shown = xml.etree.ElementTree.parse(overview.PICTURE).getroot()
assert sum(bar.tag.endswith("}rect") for bar in shown) == 7, "four bars, one of three parts, and the background"
