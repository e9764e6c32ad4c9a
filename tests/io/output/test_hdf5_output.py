"""Outputs of io/ as h5py sees them: data, record, provenance, and what else was in the file."""
import os
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

TOOL = sys.argv.pop(1)
TYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}


def contents(file):
    with open(file, "rb") as f:
        return f.read()


def write(name, dtype, rows, cols, mode="auto", force="no", command="tessera test"):
    done = subprocess.run([TOOL, "write", name, dtype, str(rows), str(cols), mode, force, command], capture_output=True,
                          text=True)
    return done.returncode, done.stderr


class Outputs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "c.h5")

    def tearDown(self):
        left = [n for n in os.listdir(self.folder.name) if n.endswith(".tmp")]
        self.folder.cleanup()
        self.assertEqual(left, [])

    def write(self, *arguments, **options):
        code, err = write(*arguments, **options)
        self.assertEqual((code, err), (0, ""))

    def test_types_and_modes(self):
        for mode in ("direct", "hdf5"):
            for name, kind in TYPES.items():
                self.write(self.file, name, 17, 33, mode=mode, force="force")
                with h5py.File(self.file) as f:
                    c = f["C"]
                    self.assertEqual((c.dtype, c.shape, c.chunks), (np.dtype(kind), (17, 33), None))
                    self.assertTrue(np.all(np.abs(c[:]) <= 4) and np.any(c[:] != 0))
                    if name == "f16":
                        first = c[:].astype("f8")
                    else:
                        np.testing.assert_array_equal(c[:].astype("f8"), first)

    def test_record(self):
        self.write(f"{self.file}:/g/C", "f32", 3, 4, command='tessera multiply "é" x')
        with h5py.File(self.file) as f:
            c = f["g/C"]
            self.assertEqual(sorted(c.attrs), ["history", "software", "version"])
            self.assertRegex(c.attrs["history"], r'^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: tessera multiply "é" x$')
            self.assertEqual(c.attrs["software"], "tessera")
            run = f["g/C.run"]
            self.assertEqual((run.attrs["command"], run.attrs["kernel"], run.attrs["check"]),
                             ('tessera multiply "é" x', "blas", "PASSED"))
            self.assertEqual((run.attrs["m"], run.attrs["grid_m"], run.attrs["seconds"], run.attrs["a"]),
                             (3, 2, 2.5, "a.h5:/A"))
            ranks = run["ranks"][:]
            self.assertEqual(list(ranks["rank"]), [0, 1])
            self.assertEqual(list(ranks["tiles"]), [10, 11])
            self.assertEqual(ranks["host"][1].decode(), "nodé")
            self.assertEqual([d.decode() for d in ranks["device"]], ["CPU #0", "CPU #1"])
            self.assertEqual((ranks["write_seconds"][0], ranks["write_bytes"][0], ranks["write_GBps"][0]),
                             (0.5, 1e9, 2.0))
            self.assertEqual((ranks["kernel_seconds"][0], ranks["kernel_gflops"][0], ranks["gflops"][0]),
                             (2.0, 2.0, 1.0))
            for lane in ("read", "upload", "exchange", "pack", "multiply", "download", "write"):
                for unit in ("seconds", "bytes", "GBps"):
                    self.assertIn(f"{lane}_{unit}", ranks.dtype.names)

    def test_keeps_the_rest(self):
        for libver in ("earliest", "latest"):
            for block in (0, 512):
                with h5py.File(self.file, "w", libver=libver, userblock_size=block) as f:
                    f["A"] = np.arange(12.0).reshape(3, 4)
                    f["A"].attrs["unit"] = "m"
                    f.create_dataset("B", data=np.arange(100), chunks=(10,), compression="gzip")
                    f.attrs["title"] = "kept"
                    f["g/x"] = 1
                self.write(f"{self.file}:/g/C", "f64", 20, 10)
                code, err = write(f"{self.file}:/g/C", "f64", 20, 10)
                self.assertEqual(code, 1)
                self.assertIn("--force", err)
                self.write(f"{self.file}:/g/C", "f32", 5, 6, force="force")
                with h5py.File(self.file) as f:
                    np.testing.assert_array_equal(f["A"][:], np.arange(12.0).reshape(3, 4))
                    np.testing.assert_array_equal(f["B"][:], np.arange(100))
                    self.assertEqual((f["A"].attrs["unit"], f.attrs["title"], f["g/x"][()], f.userblock_size),
                                     ("m", "kept", 1, block))
                    self.assertEqual((f["g/C"].shape, f["g/C"].dtype), ((5, 6), np.dtype("f4")))
                    self.assertTrue(np.any(f["g/C"][:] != 0))
                    self.assertEqual(sorted(f["g"]), ["C", "C.run", "x"])

    def test_group_attributes_are_kept(self):
        """A file with nothing but our dataset is made anew; one whose groups carry attributes is not."""
        self.write(f"{self.file}:/g/C", "f32", 300, 300)
        size = os.path.getsize(self.file)
        self.write(f"{self.file}:/g/C", "f32", 300, 300, force="force")
        self.assertEqual(os.path.getsize(self.file), size)
        with h5py.File(self.file, "a") as f:
            f["g"].attrs["note"] = "kept"
        self.write(f"{self.file}:/g/C", "f32", 300, 300, force="force")
        with h5py.File(self.file) as f:
            self.assertEqual(f["g"].attrs["note"], "kept")

    def test_refused(self):
        other = os.path.join(self.folder.name, "other.h5")
        h5py.File(other, "w").close()
        with h5py.File(self.file, "w") as f:
            f["away"] = h5py.ExternalLink(other, "/")
            f["A"] = np.ones((2, 2))
            f["soft"] = h5py.SoftLink("/A")
        before = contents(self.file)
        for name, force, text in (("/away/C", "force", "external link"), ("/A/C", "force", "not a group"),
                                  ("/A", "no", "--force"), ("/soft", "no", "--force")):
            code, err = write(f"{self.file}:{name}", "f32", 2, 2, force=force)
            self.assertEqual(code, 1)
            self.assertIn(text, err)
        self.assertEqual(contents(self.file), before)
        with h5py.File(self.file, "a"):
            code, err = write(f"{self.file}:/C", "f32", 2, 2)
            self.assertEqual(code, 1)
            self.assertIn("locked", err)
        self.write(f"{self.file}:/soft", "f32", 3, 3, force="force")
        with h5py.File(self.file) as f:
            self.assertEqual((f["A"].shape, f["soft"].shape), ((2, 2), (3, 3)))

    def test_forced_locking(self):
        """HDF5's own locks, when the environment forces them, do not meet ours."""
        for value in ("TRUE", "FALSE", "BEST_EFFORT"):
            for mode in ("direct", "hdf5"):
                done = subprocess.run([TOOL, "write", self.file, "f32", "4", "4", mode, "force", "x"],
                                      capture_output=True, text=True,
                                      env={**os.environ, "HDF5_USE_FILE_LOCKING": value})
                self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(verbosity=0)
