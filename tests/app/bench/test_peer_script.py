"""tests/bench/peer_h5py_torch.py, what tessera is measured against, multiplies rightly. Exit code 77: no Python here
has torch."""
import json
import pathlib
import subprocess
import sys

from lib import main, np, read, write

PEER = pathlib.Path(__file__).resolve().parents[2] / "bench" / "peer_h5py_torch.py"
PYTHONS = [python for python in (sys.executable, "python3")
           if subprocess.run([python, "-c", "import h5py, torch"], capture_output=True).returncode == 0]
if not PYTHONS:
    print("skipped: no torch")
    sys.exit(77)


def test_product():
    random = np.random.default_rng(3)
    a, b = random.integers(-4, 5, (70, 31)).astype("f4"), random.integers(-4, 5, (31, 50)).astype("f4")
    write("a.h5", a, "A"), write("b.h5", b, "B")
    out = subprocess.run([PYTHONS[0], PEER, "a.h5", "b.h5", "c.h5"], check=True, capture_output=True, text=True).stdout
    assert np.array_equal(read("c.h5", "C"), a @ b)
    seconds = json.loads(out)
    assert (abs(seconds["total"] - seconds["read"] - seconds["multiply"] - seconds["write"]) < 1e-6 and
            seconds["startup"] > 0), seconds


main(globals())
