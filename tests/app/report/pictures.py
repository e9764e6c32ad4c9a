"""Makes the pictures of the report in docs/pictures, of a run made now: PNG files of 200 kB at most.
Usage: bash tests/python.sh tests/app/report/pictures.py build/tessera mpirun [OPTION of multiply...]"""
import os
import pathlib
import sys

from lib import main, run
from browser import Browser

PICTURES = pathlib.Path(__file__).resolve().parents[3] / "docs" / "pictures"
EDGE = 3000


def test_pictures():
    for name, shape in (("A.h5", f"{EDGE}x{EDGE}"), ("B.h5", f"{EDGE}x{EDGE}")):
        run("generate", "-o", name, "--shape", shape)
    run("multiply", "A.h5", "B.h5", "-o", "C.h5", "--verify", "--panel", 250, "--trace", "trace.json", *sys.argv[3:],
        ranks=2)
    run("report", "C.h5", "--trace", "trace.json", "-o", "report.html")
    with Browser() as browser:
        browser.open(os.path.abspath("report.html"))
        for name, height in (("report.png", 1130),):
            browser.picture(PICTURES / name, 1180, height=height)
            size = (PICTURES / name).stat().st_size
            assert size <= 200e3, f"{name}: {size} bytes, 200 kB at most"


main(globals())
