"""multiply --checksum and --digest: h5py reads fletcher32 and sees a flipped bit; the digest of C depends on C alone,
and verify --digest finds every flipped bit."""
import json
import os

import h5py

from lib import fails, integers, leftovers, main, np, random, read, run, write

PLACES = {  # where C lies: options of multiply, the name of its file
    "contiguous": ([], "c.h5"),
    "chunked": (["--chunk", "16x24"], "c.h5"),
    "compressed": (["--chunk", "16x24", "--compress", "gzip:1", "--checksum"], "c.h5"),
    "npy": ([], "c.npy"),
    "bare": ([], "c.bin:f32:70x60"),
}


def crc32c(data):
    """By its definition, bit by bit; nothing of Tessera's."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 255]
    return f"crc32c:{value ^ 0xFFFFFFFF:08x}"


def product(*options, output="c.h5", ranks=0, a="a.h5", b="b.h5", **more):
    run("multiply", a, *([b] if b else []), "-o", output, "--force", "--device", "cpu", "--digest", "--log",
        "log.json", *options, ranks=ranks, **more)
    with open("log.json") as file:
        return json.load(file)["digest"]


def flip(name, bit, begin=0):
    with open(name, "r+b") as file:
        file.seek(begin + bit // 8)
        byte = file.read(1)[0]
        file.seek(begin + bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def test_chunks():
    """What h5py finds in the file is fletcher32, last of all filters, and C; any byte that changes is an error."""
    a, b = integers(123, 40), integers(40, 77)
    write("a.h5", a), write("b.h5", b)
    for options, compression, ranks in (([], None, 0), (["--compress", "gzip:4", "--shuffle"], "gzip", 2),
                                        (["--compress", "lzf"], "lzf", 0)):
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "20x30", "--checksum",
            *options, "--verify", ranks=ranks)
        with h5py.File("c.h5") as file:
            data = file["C"]
            assert data.fletcher32 and data.compression == compression and data.chunks == (20, 30)
            made = data.id.get_create_plist()
            assert made.get_filter(made.get_nfilters() - 1)[0] == 3, "fletcher32 is not the last"
            np.testing.assert_array_equal(data[...], a @ b)
            chunks = [data.id.get_chunk_info(i) for i in range(data.id.get_num_chunks())]
        assert "fletcher32" in run("info", "c.h5").out
        for chunk in random.choice(len(chunks), 3, replace=False):
            where, bit = chunks[chunk], int(random.integers(0, 8 * chunks[chunk].size))
            flip("c.h5", bit, where.byte_offset)
            try:
                read("c.h5")
            except OSError:
                pass
            else:
                raise AssertionError(f"h5py reads {where}, bit {bit}")
            assert "checksum" in fails("multiply", "c.h5:/C", "c.h5:/C", "--transpose-b", "-o", "d.h5", code=1,
                                       says="c.h5").error
            flip("c.h5", bit, where.byte_offset)
        np.testing.assert_array_equal(read("c.h5"), a @ b)
    noise = random.integers(0, 2**32, size=(40, 40), dtype="u8").astype("u4").view("f4")
    noise = np.where(np.isfinite(noise), noise, np.float32(1))
    write("noise.h5", noise), write("one.h5", np.eye(40, dtype="f4"))
    run("multiply", "one.h5", "noise.h5", "-o", "c.h5", "--force", "--compress", "gzip:9", "--checksum")
    with h5py.File("c.h5") as file:  # what does not shrink has its sum, too
        assert file["C"].id.get_chunk_info(0).size == 40 * 40 * 4 + 4
        np.testing.assert_array_equal(file["C"][...], noise)
    run("generate", "-o", "g.h5", "--shape", "90x50", "--chunk", "auto", "--checksum")
    with h5py.File("g.h5") as file:
        assert file["C"].fletcher32 and file["C"][...].std() > 0


def test_refused():
    write("a.h5", integers(9, 9))
    for options, says in ((["-o", "x.h5"], "--chunk auto"), (["-o", "x.npy"], "FILE.h5"),
                          (["-o", "x.bin:f32"], "FILE.h5"), (["-o", "x.npy", "--chunk", "auto"], "file.h5")):
        fails("multiply", "a.h5", "a.h5", "--checksum", *options, code=2, says=says)
        fails("generate", "--shape", "9x9", "--checksum", *options, code=2, says=says)
    fails("verify", "--digest", "00000000", "a.h5", "a.h5", "a.h5", code=2, says="C alone")
    run("multiply", "a.h5", "a.h5", "-o", "plain.h5")
    fails("verify", "--digest", "plain.h5", "plain.h5", code=1, says="multiply --digest")
    fails("verify", "--digest", "00000000", "plain.h5[1:3]", code=2, says="of a whole C: leave out its slice")
    with h5py.File("bare.h5", "w") as file: file["A"] = np.ones((2, 2))
    fails("verify", "--digest", "bare.h5", "plain.h5", code=1, says="'bare.h5' has no record of a run beside '/C'")
    fails("verify", "--digest", "bare.h5:/A", "plain.h5", code=1, says="'/A' is not the record of a run")
    fails("verify", "--digest", "nothing.json", "plain.h5", code=1, says="nothing.json")
    fails("verify", "--digest", "123", "plain.h5", code=1, says="123")
    assert not leftovers()


def test_same():
    """Whatever ranks, grid and storage."""
    a, b = random.standard_normal((70, 50)).astype("f4"), random.standard_normal((50, 60)).astype("f4")
    a, b = np.round(a * 8), np.round(b * 8)  # sums are exact, in any order
    write("a.h5", a), write("b.h5", b)
    expected = crc32c((a @ b).tobytes())
    grids = {0: [], 2: [], 3: ["--grid", "1x3"], 4: ["--grid", "2x2", "--panel", "7"]}
    for (place, (options, name)), ranks in zip(PLACES.items(), (4, 3, 2, 4, 3)):
        for grid in (0, ranks):
            found = product(*options, *grids[grid], output=name, ranks=grid)
            assert found == expected, (place, grid, found, expected)
        out = run("verify", "--digest", "log.json", name, ranks=ranks % 3).out
        assert expected in out, out
    product()
    for record in (expected, expected.partition(":")[2].upper(), "c.h5", "c.h5:/C", "c.h5:/C.run"):
        run("verify", "--digest", record, "c.h5")
    with h5py.File("c.h5") as file:
        assert file["C.run"].attrs["digest"] == expected
        assert expected in run("info", "c.h5").out
    for name, dtype in (("f16", "f2"), ("f64", "f8")):
        assert product("--type", name) == crc32c((a @ b).astype(dtype).tobytes())
    assert product("--order", "col", a="b.h5", b="a.h5") == expected  # the dataset is A·B as it lies there
    assert product("--gram", "--triangle", "lower", b=None) == crc32c(np.tril(a @ a.T).tobytes())
    big = np.array(a @ b, dtype=">f4")
    write("swapped.h5", big)
    run("verify", "--digest", expected, "swapped.h5")
    write("stack.h5", np.stack([a, 2 * a, 3 * a]), dataset="A")
    for options in ([], ["--chunk", "32x16"]):
        for ranks in [3] if options else [0]:
            found = product(*options, a="stack.h5:/A", ranks=ranks)
            assert found == crc32c(np.stack([a @ b, 2 * (a @ b), 3 * (a @ b)]).tobytes()), (options, ranks, found)
            run("verify", "--digest", found, "c.h5", ranks=2)


def test_flipped():
    """Every bit of C that changes is found, wherever it is."""
    a, b = integers(31, 8), integers(8, 29)
    write("a.h5", a), write("b.h5", b)
    expected = product(output="c.npy")
    size = os.path.getsize("c.npy")
    for bit in random.choice(31 * 29 * 32, 30, replace=False):
        flip("c.npy", int(bit), size - 31 * 29 * 4)
        fails("verify", "--digest", expected, "c.npy", code=3, says=expected)
        flip("c.npy", int(bit), size - 31 * 29 * 4)
    run("verify", "--digest", expected, "c.npy")
    write("other.h5", (a @ b).T)
    fails("verify", "--digest", expected, "other.h5", code=3, says=expected)


main(globals())
