"""Files of every kind, made with h5py, read by io/ and compared with numpy bit for bit; and every kind that is
refused."""
import itertools
import os
import subprocess
import sys
import tempfile
import unittest
import zlib

import h5py
import numpy as np

TOOL = sys.argv.pop(1)
KINDS = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def tool(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


GZIP = "direct" if tool("deflate", "x")[1] == "1\n" else "hdf5"  # who undoes gzip in this build


def contents(file):
    with open(file, "rb") as f:
        return f.read()


def sample(dtype, rows, cols):
    """Bytes that show swaps and lost bits: random ones, extremes, and for floats NaN, infinities, a denormal and -0."""
    kind = np.dtype(dtype)
    rng = np.random.default_rng(rows * 1000 + cols)
    native = kind.newbyteorder("=")
    if kind.kind == "f":
        data = rng.normal(size=(rows, cols)).astype(native)
        special = [np.nan, np.inf, -np.inf, -0.0, np.finfo(native).tiny / 2, np.finfo(native).max]
    else:
        info = np.iinfo(native)
        data = rng.integers(info.min, info.max, size=(rows, cols), dtype=native, endpoint=True)
        special = [info.min, info.max, 0, 1]
    flat = data.reshape(-1)
    flat[: len(special)] = np.array(special, dtype=object).astype(native)[: flat.size]
    return data.astype(kind)


class Files(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "x.h5")

    def tearDown(self):
        self.folder.cleanup()

    def describe(self, name):
        code, out, err = tool("describe", name)
        self.assertEqual(code, 0, err)
        return dict(line.split("=", 1) for line in out.splitlines())

    def read(self, name, mode, rect):
        path = os.path.join(self.folder.name, "out.bin")
        code, out, err = tool("read", name, mode, *rect, path)
        self.assertEqual(code, 0, err)
        used, dtype = out.split()
        return used, np.fromfile(path, dtype={"f16": "f2", "f32": "f4",
                                              "f64": "f8"}.get(dtype,
                                                               dtype[0] + str(int(dtype[1:]) // 8))).reshape(rect[2:])

    def refused(self, name, *parts):
        code, out, err = tool("describe", name)
        self.assertEqual(code, 1, out)
        self.assertEqual(err.count("\n"), 1, err)
        for part in parts:
            self.assertIn(part, err)
        return err

    def check(self, name, want, modes, pieces=True):
        """Whole, and in pieces, in each mode; bits must agree."""
        rows, cols = want.shape
        native = want.astype(want.dtype.newbyteorder("="))
        for mode, used in modes:
            rects = [(0, 0, rows, cols)]
            if pieces and rows > 3 and cols > 3:
                rects += [(1, 2, rows - 2, cols - 3), (rows - 1, cols - 1, 1, 1), (0, 0, rows, 1)]
            for rect in rects:
                got_mode, got = self.read(name, mode, rect)
                self.assertEqual(got_mode, used)
                self.assertEqual(got.dtype, native.dtype)
                part = native[rect[0] : rect[0] + rect[2], rect[1] : rect[1] + rect[3]]
                self.assertEqual(got.tobytes(), part.tobytes(), f"{name} {mode} {rect}")

    # ---- what is read -------------------------------------------------------------------------------------------

    def test_types(self):
        with h5py.File(self.file, "w") as f:
            for kind in KINDS:
                for order in "<>":
                    f[f"{kind}{'le' if order == '<' else 'be'}"] = sample(order + kind, 11, 13)
        for kind in KINDS:
            for order in "<>":
                name = f"{self.file}:/{kind}{'le' if order == '<' else 'be'}"
                d = self.describe(name)
                bits = f"{kind[0]}{int(kind[1]) * 8}"
                big = order == ">" and kind[1] != "1"
                self.assertEqual((d["dtype"], d["standard"], d["swapped"]), (bits, "1", "1" if big else "0"))
                self.assertEqual(d["type_name"], ("big-endian " if big else "") + bits)
                self.check(name, sample(order + kind, 11, 13),
                           [("auto", "direct"), ("direct", "direct"), ("hdf5", "hdf5")])

    def test_one_matrix_of_many(self):
        """Datasets of three to five dimensions, of which numbers choose a matrix."""
        for shape in ((4, 13, 11), (2, 3, 13, 11), (2, 1, 3, 13, 11)):
            leads = len(shape) - 2
            data = np.random.default_rng(leads).integers(-9, 9, shape)
            deep = tuple(min(size, 2) for size in shape[:-2]) + (5, 4)
            with h5py.File(self.file, "w") as f:
                f["plain"], f["big"] = data.astype("<f4"), data.astype(">f8")
                f.create_dataset("flat", data=data.astype("<f4"), chunks=(1,) * leads + (5, 4), compression="gzip",
                                 shuffle=True)
                f.create_dataset("deep", data=data.astype("<f4"), chunks=deep, compression="gzip")
                f.create_dataset("raw", data=data.astype(">i2"), chunks=deep)
                f.create_dataset("part", shape=shape, dtype="f4", chunks=(1,) * leads + (5, 4), fillvalue=3)
                f["part"][tuple(size - 1 for size in shape[:-2])] = 1
                compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                compact.set_layout(h5py.h5d.COMPACT)
                space = h5py.h5s.create_simple(shape)
                h5py.h5d.create(f.id, b"compact", h5py.h5t.NATIVE_FLOAT, space, compact).write(
                    space, space, data.astype("<f4"))
            for name in ("plain", "big", "flat", "deep", "raw", "part", "compact"):
                with h5py.File(self.file) as f:
                    whole = f[name][...]
                indices = list(itertools.product(*(range(size) for size in shape[:-2])))
                for index in indices:
                    text = f"{self.file}:/{name}[{','.join(map(str, index))},...]"
                    used = "hdf5" if name in ("deep", "raw", "compact") else "direct"
                    self.check(text, whole[index], [("auto", used), ("hdf5", "hdf5")],
                               pieces=index in (indices[0], indices[-1]))

    def test_layouts_and_filters(self):
        data = sample("<f4", 37, 29)
        cases = {
            "chunked": (dict(chunks=(8, 5)), ""),
            "gzip": (dict(chunks=(8, 29), compression="gzip", compression_opts=4), "gzip(4)"),
            "shuffle": (dict(chunks=(10, 10), compression="gzip", compression_opts=9, shuffle=True), "shuffle gzip(9)"),
            "fletcher": (dict(chunks=(40, 40), maxshape=(None, None), fletcher32=True), "fletcher32"),
        }
        if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            cases["szip"] = (dict(chunks=(8, 8), compression="szip"), "szip")
        for libver in ("earliest", "latest"):
            with h5py.File(self.file, "w", libver=libver) as f:
                for name, (options, _) in cases.items():
                    f.create_dataset(name, data=data, **options)
                f.create_dataset("scale", data=np.arange(24, dtype="<i4").reshape(4, 6), chunks=(2, 3), scaleoffset=0)
                f.create_dataset("big", data=sample(">f8", 37, 29), chunks=(8, 5), compression="gzip")
            for name, (options, filters) in cases.items():
                d = self.describe(f"{self.file}:/{name}")
                self.assertEqual((d["layout"], d["filters"], d["offset"]), ("chunked", filters, "-1"))
                self.assertEqual(d["chunk"], "x".join(map(str, options["chunks"])))
                ours = {"szip": "hdf5", "gzip": GZIP, "shuffle": GZIP}.get(name, "direct")
                self.check(f"{self.file}:/{name}", data, [("auto", ours), ("hdf5", "hdf5")])
            self.check(f"{self.file}:/scale", np.arange(24, dtype="<i4").reshape(4, 6), [("auto", "hdf5")])
            self.assertEqual(self.describe(f"{self.file}:/big")["swapped"], "1" if GZIP == "direct" else "0")
            self.check(f"{self.file}:/big", sample(">f8", 37, 29), [("auto", GZIP), ("hdf5", "hdf5")])
            code, _, err = tool("read", f"{self.file}:/scale", "direct", 0, 0, 1, 1, "/dev/null")
            self.assertEqual(code, 1)
            self.assertIn("(chunked, scaleoffset) has no raw bytes", err)
            self.assertIn("--io hdf5", err)

    def create(self, f, name, data, chunks, filters, fill=None):
        """A chunked dataset whose filters are applied in the order given, which h5py's own options do not allow."""
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunks)
        for one in filters:
            if isinstance(one, int):  # a shuffle of this width; HDF5 gives the first one the element's
                plist.set_filter(h5py.h5z.FILTER_SHUFFLE, 0, (one,))
                continue
            {"gzip": lambda: plist.set_deflate(3), "shuffle": plist.set_shuffle,
             "fletcher32": plist.set_fletcher32}[one]()
        if fill is not None:
            plist.set_fill_value(np.array(fill, data.dtype))
        space = h5py.h5s.create_simple(data.shape, (h5py.h5s.UNLIMITED,) * 2 if chunks[0] > data.shape[0] else None)
        return h5py.Dataset(h5py.h5d.create(f.id, name.encode(), h5py.h5t.py_create(data.dtype), space, plist))

    def test_chunks(self):
        """Every order of filters, types of every width in both byte orders, chunks that are rows, columns, one element,
        larger than the matrix or cut at its edges, in old and new formats: whole, in parts and as slices, as numpy has
        them."""
        orders = [c for n in range(4) for c in itertools.permutations(("gzip", "shuffle", "fletcher32"), n)]
        shapes = [(8, 5), (1, 29), (37, 1), (37, 29), (64, 64), (36, 28), (1, 1)]
        kinds = ["<f4", ">f8", "<f2", ">i2", "u1", ">u4", "<i8"]
        cases = [(o, shapes[i % 7], kinds[(i + i // 7) % 7]) for i,
                 o in enumerate(orders * 2)] + [(("shuffle", "gzip"), s, k) for s, k in zip(shapes, kinds)]
        for number, (filters, chunks, kind) in enumerate(cases):
            data = sample(kind, 37, 29)
            with h5py.File(self.file, "w", libver=("earliest", "latest")[number % 2]) as f:
                self.create(f, "A", data, chunks, filters)[:] = data
            ours = GZIP if "gzip" in filters else "direct"
            with self.subTest(filters=filters, chunks=chunks, kind=kind):
                self.assertEqual(self.describe(f"{self.file}:/A")["raw_chunks"], "1" if ours == "direct" else "0")
                self.check(f"{self.file}:/A", data, [("auto", ours)])
                self.check(f"{self.file}:/A[5:33,3:]", data[5:33, 3:], [("auto", ours), ("hdf5", "hdf5")])

    def test_two_shuffles(self):
        """Each with a width of its own."""
        for filters, ours in (((4, 4), "direct"), ((4, 2), "direct"), ((4, 2, "gzip"), GZIP)):
            data = sample("<f4", 37, 29)
            with h5py.File(self.file, "w") as f:
                made = self.create(f, "A", data, (8, 5), filters)
                made[:] = data
                widths = [made.id.get_create_plist().get_filter(i)[2] for i in range(2)]
            with self.subTest(filters=filters):
                self.assertEqual(widths, [(4,), filters[1:2]])
                self.check(f"{self.file}:/A", data, [("auto", ours), ("hdf5", "hdf5")])

    def test_chunks_never_written(self):
        """Unallocated chunks hold the fill value, in the file's byte order, or zeros."""
        for kind in ("<f4", ">f8", ">i2", "u1"):
            for fill in (None, 7):
                data = np.full((37, 29), fill or 0, kind)
                with h5py.File(self.file, "w") as f:
                    made = self.create(f, "A", data, (8, 5), ("shuffle", "fletcher32"), fill)
                    made[9:12, 7:9] = data[9:12, 7:9] = 3
                self.check(f"{self.file}:/A", data, [("auto", "direct"), ("hdf5", "hdf5")])

    def test_chunk_masks(self):
        """Chunks that went without some of their filters, as HDF5 does where deflate gains nothing."""
        data = sample("<f8", 6, 4)
        with h5py.File(self.file, "w") as f:
            made = self.create(f, "A", data, (2, 4), ("shuffle", "gzip"))
            shuffled = np.frombuffer(data[2:4].tobytes(), "u1").reshape(-1, 8).T.tobytes()
            made.id.write_direct_chunk((0, 0), data[:2].tobytes(), 3)
            made.id.write_direct_chunk((2, 0), shuffled, 2)
            made.id.write_direct_chunk((4, 0), zlib.compress(data[4:].tobytes()), 1)
        self.check(f"{self.file}:/A", data, [("auto", GZIP), ("hdf5", "hdf5")])

    def test_damaged_chunks(self):
        """A flipped bit, a stream cut short, one that holds too much or too little, bytes missing: a line that says
        which chunk."""
        data = sample("<f4", 8, 8)
        packed = zlib.compress(data[4:].tobytes())
        flipped = bytearray(packed)
        flipped[len(packed) // 2] ^= 16
        broken = {"short": packed[:-20], "bits": bytes(flipped), "more": zlib.compress(data.tobytes() * 3),
                  "less": zlib.compress(b"1234"), "none": b"\x00"}
        for name, stored in broken.items():
            with h5py.File(self.file, "w") as f:
                made = self.create(f, "A", data, (4, 8), ("gzip",))
                made[:4] = data[:4]
                made.id.write_direct_chunk((4, 0), stored, 0)
            self.check(f"{self.file}:/A[:4,:]", data[:4], [("auto", GZIP)])
            self.unreadable("the 4x8 chunk at (4, 0)" if GZIP == "direct" else "damaged")
        with h5py.File(self.file, "w") as f:
            made = self.create(f, "A", data, (4, 8), ("fletcher32",))
            made[:] = data
            place = made.id.get_chunk_info(1).byte_offset
        with open(self.file, "r+b") as f:
            f.seek(place + 9)
            byte = f.read(1)[0]
            f.seek(place + 9)
            f.write(bytes([byte ^ 1]))
        self.unreadable("the 4x8 chunk at (4, 0): its checksum (fletcher32) is")
        with h5py.File(self.file, "w") as f:
            made = self.create(f, "A", data, (4, 8), ("fletcher32",))
            made.id.write_direct_chunk((0, 0), b"abc", 0)
        self.unreadable("too few for a checksum")
        with h5py.File(self.file, "w") as f:
            made = self.create(f, "A", data, (4, 8), ("shuffle",))
            made.id.write_direct_chunk((0, 0), bytes(5000), 0)
        self.unreadable("takes 5000 bytes in the file, more than its 128 can")

    def unreadable(self, *parts):
        code, _, err = tool("read", f"{self.file}:/A", "auto", 0, 0, 8, 8, "/dev/null")
        self.assertEqual(code, 1)
        self.assertEqual(err.count("\n"), 1, err)
        for part in parts + ("may be damaged",):
            self.assertIn(part, err)

    def test_compact_and_latest(self):
        data = sample("<f8", 5, 6)
        with h5py.File(self.file, "w", libver="latest") as f:
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple((5, 6)),
                            plist).write(h5py.h5s.ALL, h5py.h5s.ALL, data)
            f["contiguous"] = data
        self.assertEqual(self.describe(f"{self.file}:/compact")["layout"], "compact")
        self.check(f"{self.file}:/compact", data, [("auto", "hdf5")])
        self.check(f"{self.file}:/contiguous", data, [("auto", "direct"), ("hdf5", "hdf5")])

    def test_user_block(self):
        data = sample("<f4", 9, 8)
        for block in (512, 4096):
            with h5py.File(self.file, "w", userblock_size=block) as f:
                f["A"] = data
                f.create_dataset("chunked", data=data, chunks=(3, 3), compression="gzip")
                f.create_dataset("unwritten", shape=(4, 5), dtype="f4", fillvalue=2.5)
            with open(self.file, "r+b") as f:
                f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(block, b" "))
            self.check(f"{self.file}:/A", data, [("auto", "direct"), ("hdf5", "hdf5")])
            self.check(f"{self.file}:/chunked", data, [("auto", GZIP), ("hdf5", "hdf5")])
            self.assertEqual(self.describe(f"{self.file}:/unwritten")["offset"], "-1")
            self.check(f"{self.file}:/unwritten", np.full((4, 5), 2.5, "f4"), [("auto", "hdf5")])

    def test_unwritten(self):
        with h5py.File(self.file, "w") as f:
            f.create_dataset("plain", shape=(4, 5), dtype=">i4", fillvalue=-7)
            f.create_dataset("chunked", shape=(40, 50), dtype="f8", chunks=(8, 8), compression="gzip", fillvalue=1.5)
            f["chunked"][3, 4] = 2
            f.create_dataset("stack", (2, 4, 6), "f4", chunks=(2, 4, 6), fillvalue=2.5, compression="gzip")
        self.check(f"{self.file}:/stack[1]", np.full((4, 6), 2.5, "f4"), [("auto", "hdf5")])
        self.check(f"{self.file}:/plain", np.full((4, 5), -7, "i4"), [("auto", "hdf5")])
        want = np.full((40, 50), 1.5)
        want[3, 4] = 2
        self.check(f"{self.file}:/chunked", want, [("auto", GZIP), ("hdf5", "hdf5")])
        code, _, err = tool("read", f"{self.file}:/plain", "direct", 0, 0, 1, 1, "/dev/null")
        self.assertEqual(code, 1)
        self.assertIn("never written", err)

    def test_zero_sized(self):
        with h5py.File(self.file, "w") as f:
            f.create_dataset("rows", shape=(0, 7), dtype="f4")
            f.create_dataset("cols", shape=(7, 0), dtype="f4")
            f.create_dataset("grows", shape=(0, 7), maxshape=(None, 7), dtype="f4")
        for name, shape in (("rows", (0, 7)), ("cols", (7, 0)), ("grows", (0, 7))):
            d = self.describe(f"{self.file}:/{name}")
            self.assertEqual((int(d["rows"]), int(d["cols"])), shape)
            self.read(f"{self.file}:/{name}", "auto", (0, 0, *shape))
            self.read(f"{self.file}:/{name}", "hdf5", (0, 0, *shape))

    def test_odd_number_types(self):
        with h5py.File(self.file, "w") as f:
            data = np.array([[1, -2, 3], [100, -2000, 30000]])
            t = h5py.h5t.STD_I32LE.copy()
            t.set_precision(24)
            t.set_size(3)
            f.create_dataset("i24", shape=(2, 3), dtype=h5py.h5t.STD_I32LE.dtype)
            del f["i24"]
            space = h5py.h5s.create_simple((2, 3))
            h5py.h5d.create(f.id, b"i24", t, space).write(h5py.h5s.ALL, h5py.h5s.ALL, data.astype("i4"),
                                                          h5py.h5t.NATIVE_INT32)
            if np.dtype("longdouble").itemsize > 8:
                f["long"] = np.array([[1.5, -2.25]], dtype="longdouble")
        d = self.describe(f"{self.file}:/i24")
        self.assertEqual((d["dtype"], d["standard"]), ("i32", "0"))
        self.check(f"{self.file}:/i24", data.astype("i4"), [("auto", "hdf5")])
        if np.dtype("longdouble").itemsize > 8:
            self.assertEqual(self.describe(f"{self.file}:/long")["dtype"], "f64")
            self.check(f"{self.file}:/long", np.array([[1.5, -2.25]]), [("auto", "hdf5")])

    def test_slices(self):
        data = sample("<f4", 20, 30)
        with h5py.File(self.file, "w") as f:
            f["A"] = data
            f.create_dataset("B", data=data, chunks=(7, 7))
        for name, mode in (("A", "direct"), ("A", "hdf5"), ("B", "direct"), ("B", "hdf5")):
            d = self.describe(f"{self.file}:/{name}[3:11,5:]")
            self.assertEqual((d["rows"], d["cols"], d["row0"], d["col0"], d["dataset_rows"]),
                             ("8", "25", "3", "5", "20"))
            self.check(f"{self.file}:/{name}[3:11,5:]", data[3:11, 5:], [(mode, mode)])
        self.refused(f"{self.file}:/A[20:21,:]", "shapes do not agree", ":/A[20:21,:]", "none of the 20 rows")
        self.refused(f"{self.file}:/A[:,31:]", "none of the 30 columns")
        self.refused(f"{self.file}:/A[3,4]", "wrong usage", "write 3:4 for a part of one row")
        self.refused(f"{self.file}:/A[::2,:]", "wrong usage", "is not 1")

    def test_slices_are_numpy_s(self):
        """Any bounds: what numpy selects, or a refusal where that is nothing."""
        data = np.arange(12 * 9, dtype="<f8").reshape(12, 9)
        with h5py.File(self.file, "w") as f:
            f["A"] = data
        rng = np.random.default_rng(3)
        bounds = ["", *map(str, range(-14, 15))]
        for _ in range(150):
            rows, cols = (":".join(rng.choice(bounds, 2)) for _ in range(2))
            slice_text = str(
                rng.choice([f"[{rows},{cols}]", f"[{rows}, {cols}]", f"[{rows}]", f"[...,{cols}]", f"[{rows},...]"])
            )
            want = eval(f"data{slice_text}")
            same = any(first and first == last for first, last in (rows.split(":"), cols.split(":")))
            if want.size:
                d = self.describe(f"{self.file}:A{slice_text}")
                self.assertEqual((int(d["rows"]), int(d["cols"])), want.shape, slice_text)
                self.assertEqual(data[int(d["row0"]), int(d["col0"])], want[0, 0], slice_text)
            elif not same:
                self.refused(f"{self.file}:A{slice_text}", "selects none")

    def test_called_like_a_slice(self):
        """An exact name wins over the slice it looks like; a slash behind it says so in any case."""
        with h5py.File(self.file, "w") as f:
            f["A"] = np.zeros((4, 5))
            f["A[0]"] = np.ones((2, 3))
            f["g/B[0:1,0:2]"] = np.ones((7, 8))
            f["g/B"] = np.ones((9, 9))
        for name, shape in {
            "/A[0]": (2, 3),
            "/A[0]/": (2, 3),
            "A[0]": (2, 3),
            "/A[0][0:1]": (1, 3),
            "/g/B[0:1,0:2]": (7, 8),
            "/A[0:1]": (1, 5),
            "/g/B[0:1,0:3]": (1, 3),
        }.items():
            d = self.describe(f"{self.file}:{name}")
            self.assertEqual((int(d["rows"]), int(d["cols"])), shape, name)
        self.assertEqual(self.describe(f"{self.file}:/A[1]")["rows"], "1")
        self.refused(f"{self.file}:/A[1]/", "has no '/A[1]'; did you mean '/A[0]'?")

    def test_matlab(self):
        """As MATLAB -v7.3 writes: 512 bytes of user block, classes as attributes, cells behind references, text as
        numbers."""
        data = sample("<f8", 6, 4)
        file = os.path.join(self.folder.name, "x.mat")
        with h5py.File(file, "w", userblock_size=512) as f:
            f["X"] = data
            f["X"].attrs["MATLAB_class"] = np.bytes_("double")
            f["name"] = np.array([[104], [105]], dtype="u2")
            f["name"].attrs["MATLAB_class"] = np.bytes_("char")
            f["#refs#/a"] = np.ones((2, 2))
            f["cell"] = np.array([[f["#refs#/a"].ref]], dtype=h5py.ref_dtype)
            f["cell"].attrs["MATLAB_class"] = np.bytes_("cell")
            f["nothing"] = np.array([0, 0], dtype="u8")
            f["nothing"].attrs["MATLAB_empty"] = np.uint8(1)
        d = self.describe(file)
        self.assertEqual((d["path"], d["matlab_class"]), ("/X", "double"))
        self.check(file, data, [("auto", "direct"), ("hdf5", "hdf5")])
        self.refused(f"{file}:/name", "MATLAB char array")
        self.refused(f"{file}:/cell", "references to objects")
        self.refused(f"{file}:/nothing", "an empty MATLAB array")
        with h5py.File(file, "a") as f:
            f["z"] = np.zeros((2, 2), dtype=[("real", "f8"), ("imag", "f8")])
        self.assertIn("c128 {real, imag}", self.describe(f"{file}:/z").values())

    def test_netcdf(self):
        """As netCDF-4 writes: dimension scales (one-dimensional) beside the variable, references to them, creation
        order tracked."""
        data = sample("<f4", 6, 4)
        file = os.path.join(self.folder.name, "x.nc")
        with h5py.File(file, "w", libver="latest", track_order=True) as f:
            f.attrs["_NCProperties"] = "version=2"
            f["lat"] = np.arange(6.0)
            f["lon"] = np.arange(4.0)
            f["lat"].make_scale("lat")
            f["lon"].make_scale("lon")
            f.create_dataset("group/t", data=data, chunks=(6, 4), compression="gzip", shuffle=True,
                             fillvalue=9.96921e36)
            f["group/t"].dims[0].attach_scale(f["lat"])
            f["group/t"].dims[1].attach_scale(f["lon"])
            f["group/t"].attrs["_Netcdf4Dimid"] = 0
        self.assertEqual(self.describe(file)["path"], "/group/t")
        self.check(file, data, [("auto", GZIP), ("hdf5", "hdf5")])

    # ---- which dataset --------------------------------------------------------------------------------------------

    def test_choice(self):
        with h5py.File(self.file, "w") as f:
            f["deep/er/only"] = np.ones((2, 3))
            f["vector"] = np.ones(4)
            f["deep/self"] = f["deep"]  # a circle of hard links
            f["alias"] = h5py.SoftLink("/deep/er/only")
        self.assertEqual(self.describe(self.file)["path"], "/deep/er/only")
        self.assertEqual(self.describe(f"{self.file}/alias")["path"], "/deep/er/only")
        self.assertEqual(self.describe(f"{self.file}::/deep/er/only")["rows"], "2")
        with h5py.File(self.file, "a") as f:
            f["second"] = np.ones((5, 5), dtype="f4")
        self.refused(self.file, "2 matrices", "/deep/er/only (2x3 f64)", "/second (5x5 f32)", "name one of them")
        self.refused(f"{self.file}:/absent", "not found", "has no '/absent'; it holds /deep/er/only (2x3 f64), /second")
        self.refused(f"{self.file}:/secnd", "has no '/secnd'; did you mean '/second'? It holds /deep")
        self.refused(f"{self.file}:only", "has no '/only'; did you mean '/deep/er/only'?")
        self.refused(f"{self.file}:/Deep/ER/onyl", "did you mean '/deep/er/only'?")
        self.refused(f"{self.file}:/vector/x", "not found", "not a group")
        self.refused(f"{self.file}:/deep", "is a group, not a dataset")
        with h5py.File(self.file, "w") as f:
            f["s"] = "text"
        self.refused(self.file, "no dataset of numbers, only /s (")
        # matrices come first; where there are none stacks of them, then vectors, then numbers
        for name, data in (("n", 3.0), ("v", np.ones(4)), ("stack", np.ones((2, 3, 4)))):
            with h5py.File(self.file, "a") as f:
                f[name] = data
            self.assertEqual(self.describe(self.file)["path"], f"/{name}")
        with h5py.File(self.file, "a") as f:
            f["w/more"] = np.ones((2, 1, 4), "f4")
        self.refused(self.file, "2 matrices: /stack (2x3x4 f64), /w/more (2x1x4 f32); name one of them")
        with h5py.File(self.file, "w") as f:
            f["s"] = "text"
        self.refused(f"{self.file}:/absent", "it holds no matrix")
        h5py.File(self.file, "w").close()
        self.refused(self.file, "holds no dataset")

    # ---- what is refused ------------------------------------------------------------------------------------------

    def test_refused_kinds(self):
        with h5py.File(self.file, "w") as f:
            f["d1"] = np.ones(5)
            f["d3"] = np.ones((2, 3, 4), ">f4")
            f["scalar"] = 3.0
            f["null"] = h5py.Empty("f4")
            for name, fields in (("unequal", "f4 f8"), ("whole", "i4 i4"), ("halves", "f2 f2"), ("three", "f4 f4 f4"),
                                 ("orders", "<f4 >f4")):
                f[name] = np.zeros((2, 2), list(zip(("r", "i", "j"), fields.split())))
            f["table"] = np.zeros((2, 2), [("x", "f4"), ("name", "S3")])
            f["string"] = np.array([[b"a", b"bc"]], "S4")
            f["vlen"] = np.array([["a", "bc"]], h5py.string_dtype())
            f.create_dataset("enum", shape=(2, 2), dtype=h5py.enum_dtype({"RED": 0, "BLUE": 1}))
            f.create_dataset("opaque", data=np.zeros((2, 2), "V5"))
            f.create_dataset("lists", shape=(2, 2), dtype=h5py.vlen_dtype("f4"))
            f.create_dataset("arrays", shape=(2, 2), dtype=np.dtype([("a", "f4", (3,))]))
            f["type"] = np.dtype("f4")
        where = f"{self.file}:/"
        self.refused(where + "null", "empty (a null dataspace)")
        for name in ("unequal", "whole", "halves", "orders"):
            self.refused(where + name, "complex numbers (compound {r, i}) whose parts are not two equal f32 or f64")
        self.refused(where + "three", "a compound {r, i, j}")
        self.refused(where + "table", "a compound {x, name}")
        self.refused(where + "string", "strings")
        self.refused(where + "vlen", "strings")
        self.refused(where + "enum", "an enum of BLUE, RED")
        self.refused(where + "opaque", "opaque")
        self.refused(where + "lists", "varying length")
        self.refused(where + "arrays", "compound {a}")
        self.refused(where + "type", "named type")
        code, out, _ = tool("list", self.file)
        self.assertEqual(code, 0)
        listed = dict(line.split("\t") for line in out.splitlines())
        self.assertEqual(list(listed), sorted("/" + n
                                              for n in
                                              "d1 d3 scalar null unequal whole halves three "
                                              "orders table string vlen enum opaque lists "
                                              "arrays".split()))
        self.assertEqual([name for name, reason in listed.items() if not reason], ["/d1", "/d3", "/scalar"])

    def test_leads_elsewhere(self):
        """External storage, external and dangling links, views: nothing outside the file is opened."""
        other = os.path.join(self.folder.name, "other.h5")
        with h5py.File(other, "w") as f:
            f["A"] = np.ones((2, 2))
        secret = os.path.join(self.folder.name, "secret")
        with open(secret, "wb") as f:
            f.write(bytes(64))
        with h5py.File(self.file, "w", libver="latest") as f:
            f["link"] = h5py.ExternalLink(other, "/A")
            f["group"] = h5py.ExternalLink(other, "/")
            f["soft"] = h5py.SoftLink("/group/A")
            f["dangling"] = h5py.SoftLink("/nowhere")
            f["round"] = h5py.SoftLink("/round")
            f["fine/A"] = np.full((2, 2), 7.0)
            f["fine/b"] = h5py.SoftLink("A")
            f["c"] = h5py.SoftLink("fine")
            f.create_dataset("outside", shape=(2, 4), dtype="f8", external=[(secret, 0, 64)])
            view = h5py.VirtualLayout(shape=(2, 2), dtype="f8")
            view[:] = h5py.VirtualSource(other, "A", shape=(2, 2))
            f.create_virtual_dataset("view", view)
        where = f"{self.file}:/"
        self.refused(where + "link", "external link to file", "other.h5")
        self.refused(where + "group/A", "'/group' is an external link")
        self.refused(where + "soft", "external link")
        self.refused(where + "dangling", "soft link to '/nowhere', which is not there")
        self.refused(where + "round", "circle")
        self.refused(where + "outside", "external storage")
        self.refused(where + "view", "virtual dataset")
        self.assertEqual(self.describe(where + "c/b")["path"], "/fine/A")
        self.assertEqual(self.describe(where + "c/b")["rows"], "2")
        listed = dict(line.split("\t") for line in tool("list", self.file)[1].splitlines())
        self.assertEqual(listed["/fine/A"], "")
        self.assertIn("link to another file", listed["/link"])
        self.assertIn("external", listed["/outside"])
        # opening a pipe nobody writes to would wait for ever
        for path in (other, secret):
            os.unlink(path)
            os.mkfifo(path)
        for path in ("link", "group/A", "soft", "outside", "view"):
            self.refused(where + path)
        self.assertEqual(tool("list", self.file)[0], 0)

    def test_unknown_filter(self):
        """No plugin may be loaded for a filter, even when a path offers one."""
        with h5py.File(self.file, "w") as f:
            made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            made.set_chunk((5, 5))
            made.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (1, 2, 3))
            h5py.h5d.create(f.id, b"zfp", h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((20, 20)), made)
        self.refused(f"{self.file}:/zfp", "filter 32013", "plugins are not loaded", "h5py and hdf5plugin")
        self.refused(self.file, "filter 32013")  # the only matrix, even though it cannot be read

    def test_bad_files(self):
        text = os.path.join(self.folder.name, "notes.h5")
        with open(text, "w") as f:
            f.write("hello" * 1000)
        self.refused(text, "not an HDF5 file")
        empty = os.path.join(self.folder.name, "empty.h5")
        open(empty, "w").close()
        self.refused(empty, "(0 bytes) is not an HDF5 file")
        self.refused(os.path.join(self.folder.name, "absent.h5"), "not found", "No such file")
        self.refused(self.folder.name, "is a directory")
        self.refused("/dev/null", "not a regular file")
        with h5py.File(self.file, "w") as f:
            f["A"] = np.ones((200, 200))
            f.create_dataset("B", data=np.random.default_rng(1).normal(size=(64, 64)), chunks=(64, 64),
                             compression="gzip", fletcher32=True)
        whole = contents(self.file)
        for keep in (len(whole) - 1, len(whole) // 2, 600, 100, 9):
            with open(self.file, "wb") as f:
                f.write(whole[:keep])
            err = self.refused(f"{self.file}:/A")
            self.assertTrue("truncated" in err or "damaged" in err, err)
        with h5py.File(self.file, "w") as f:
            f.create_dataset("B", data=np.random.default_rng(1).normal(size=(64, 64)), chunks=(64, 64),
                             compression="gzip")
            place = f["B"].id.get_chunk_info(0).byte_offset
        with open(self.file, "r+b") as f:
            f.seek(place)
            f.write(b"\xff" * 100)
        code, _, err = tool("read", self.file, "auto", 0, 0, 64, 64, "/dev/null")
        self.assertEqual(code, 1)
        self.assertIn("may be damaged", err)

    def test_random_damage(self):
        """Bytes of the head are wrong: an answer or a one-line error, never a crash."""
        with h5py.File(self.file, "w") as f:
            f["A"] = np.ones((20, 20))
            f.create_dataset("B", data=np.ones((20, 20)), chunks=(5, 5), compression="gzip")
        whole = contents(self.file)
        rng = np.random.default_rng(7)
        for _ in range(40):
            damaged = bytearray(whole)
            for at in rng.integers(0, min(len(whole), 4096), 4):
                damaged[at] = rng.integers(0, 256)
            with open(self.file, "wb") as f:
                f.write(damaged)
            code, _, err = tool("describe", f"{self.file}:/A")
            self.assertIn(code, (0, 1), err)
            self.assertEqual(err.count("\n"), code)

    def test_locked(self):
        """A file another program has open for writing is refused with the way out; reading beside readers works."""
        with h5py.File(self.file, "w") as f:
            f["A"] = np.ones((2, 2))
        with h5py.File(self.file, "r"):
            self.describe(self.file)
        with h5py.File(self.file, "a"):
            self.refused(self.file, "HDF5_USE_FILE_LOCKING=FALSE")


if __name__ == "__main__":
    unittest.main(verbosity=0)
