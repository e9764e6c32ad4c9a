"""info: what a file holds, refused datasets with the reason, and the devices of the ranks."""
import os
import shutil
import subprocess
import sys

import h5py

from lib import fails, main, np, run, write


def make_file():
    with h5py.File("many.h5", "w") as file:
        file.create_dataset("plain", data=np.ones((3, 5), ">f4"))
        file.create_dataset("deep/packed", data=np.ones((64, 48)), chunks=(16, 8), shuffle=True, compression="gzip", compression_opts=4)
        file.create_dataset("deep/vector", data=np.ones(7))
        file.create_dataset("cube", data=np.ones((2, 3, 4)))
        file.create_dataset("complex", data=np.ones((2, 2), "c16"))
        file.create_dataset("words", data=np.array([[b"a", b"b"]]))
        matlab = file.create_dataset("matlab", data=np.ones((4, 9)))
        matlab.attrs["MATLAB_class"] = np.bytes_("double")


def line_of(text, path):
    lines = [line for line in text.splitlines() if line.startswith(path + " ")]
    assert len(lines) == 1, f"{path}: {text}"
    return lines[0]


def test_list():
    make_file()
    for ranks in (0, 2):
        text = run("info", "many.h5", ranks=ranks).out
        plain = line_of(text, "/plain")
        assert "3 x 5" in plain and "big-endian f32" in plain and "contiguous" in plain, plain
        packed = line_of(text, "/deep/packed")
        assert "64 x 48" in packed and "f64" in packed and "chunked 16 x 8" in packed and "shuffle" in packed and "gzip" in packed, packed
        matlab = line_of(text, "/matlab")
        assert "MATLAB_class double" in matlab and "9 x 4" in matlab and "--order col" in matlab, matlab
        for path, reason in (("/deep/vector", "dimension"), ("/cube", "dimension"), ("/complex", "complex"), ("/words", "string")):
            line = line_of(text, path)
            assert "cannot be multiplied" in line and reason in line, line
        assert "3 matrices, 4 other datasets" in text, text


def test_one():
    make_file()
    assert "64 x 48" in run("info", "many.h5:/deep/packed").out
    assert "64 x 48" in run("info", "many.h5/deep/packed").out
    assert "2 x 48" in run("info", "many.h5:/deep/packed[3:5,:]").out
    fails("info", "many.h5:/cube", ranks=2, code=1, says=["/cube", "dimension"])
    fails("info", "many.h5:/absent", code=1, says="/absent")


def test_candidates():
    make_file()
    fails("compare", "many.h5", "many.h5", code=2, says=["/plain", "/deep/packed"])


def test_devices():
    text = run("info", "--devices", "--device", "cpu", ranks=3).out
    for rank in range(3):
        lines = [line for line in text.splitlines() if line.startswith(f"rank {rank} on ")]
        assert len(lines) == 1 and "cores" in lines[0] and "memory" in lines[0], text
    for library in ("MPI: ", "CUDA-aware: ", "NCCL", "HDF5: ", "BLAS: "):
        assert library in text, text
    assert "parallel" in text or "serial" in text, text
    fails("info", "--devices", "--device", "abacus", ranks=2, code=2, says=["abacus", "cpu"])


def test_no_gpu():
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    fails("info", "--devices", "--device", "cuda", ranks=2, environment=hidden, code=1, says="--device cpu")
    assert "cores" in run("info", "--devices", environment=hidden).out
    a = write("a.h5", np.ones((2, 2)))
    fails("multiply", a, a, "-o", "c.h5", "--device", "cuda", ranks=2, environment=hidden, code=1, says="--device cpu")


def follow(command):
    """The shell runs it as it stands, where python3 is a Python that has h5py."""
    os.makedirs("bin", exist_ok=True)
    if not os.path.exists("bin/python3"):
        os.symlink(sys.executable, "bin/python3")
    subprocess.run(command, shell=True, check=True, timeout=60, env=dict(os.environ, PATH=os.path.abspath("bin") + ":" + os.environ["PATH"]))


def test_advice_for_filters():
    """What the error says to do about a filter that HDF5 lacks gives a file that can be multiplied."""
    os.makedirs("odd 'folder'", exist_ok=True)
    data = np.arange(12.0 * 20).reshape(12, 20)
    for name, copy, path in (("l.h5", "l-gzip.h5", "/lzf"), ("odd 'folder'/x y.h5", "odd 'folder'/x y-gzip.h5", "/g r/$A")):
        with h5py.File(name, "w") as file:
            file.create_dataset(path, data=data, dtype=">f8", chunks=(5, 7), compression="lzf")
        error = fails("multiply", f"{name}:{path}", f"{name}:{path}", "--transpose-b", "-o", "p.h5", code=1, says=["lzf", "python3 -c", "h5py"]).error
        assert "h5repack" not in error and "hdf5plugin" not in error, error
        follow(error[error.index("python3 -c"):])
        run("multiply", copy, copy, "--transpose-b", "-o", "p.h5", "--force")
        with h5py.File("p.h5") as file:
            assert np.array_equal(file["C"][:], data @ data.T)
    assert "tessera info l.h5:/lzf" in line_of(run("info", "l.h5").out, "/lzf")
    with h5py.File("l.h5", "a") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((5, 5))
        made.set_filter(40123, h5py.h5z.FLAG_OPTIONAL, ())
        h5py.h5d.create(file.id, b"unknown", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((10, 10)), made)
    error = fails("info", "l.h5:/unknown", code=1, says=["40123", "without that filter"]).error
    assert "python3" not in error and "h5repack" not in error, error


def test_advice_for_external_storage():
    if not shutil.which("h5repack"):
        return
    with h5py.File("outside.h5", "w") as file:
        file.create_dataset("A", (4, 4), "f4", external=[("raw.bin", 0, 64)])[:] = 3
    error = fails("info", "outside.h5:/A", code=1, says=["external storage", "h5repack -l CONTI OLD.h5 NEW.h5"]).error
    command = error[error.index("h5repack"):].replace("OLD", "outside").replace("NEW", "inside")
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert "4 x 4" in run("info", "inside.h5:/A").out


main(globals())
