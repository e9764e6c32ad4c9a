"""Filters of HDF5 that are decoded and encoded by threads: files written by h5py, by HDF5's own plugins where they are
installed, and chunk by chunk with the libraries; C read back in the same ways."""
import ctypes
import ctypes.util
import os
import shutil
import struct

import h5py
import numpy as np
from lib import fails, integers, leftovers, main, run, write

# Plugins would change what a filter's values say: they are left out until the tests that are about them.
FOLDERS = [h5py.h5pl.get(i) for i in range(h5py.h5pl.size())]
for _ in FOLDERS:
    h5py.h5pl.remove(0)

HERE = next(line.split()[1:] for line in run("--version").out.splitlines() if line.startswith("filters"))
IDS = {"bzip2": 307, "lzf": 32000, "blosc": 32001, "lz4": 32004, "bitshuffle": 32008, "zstd": 32015,
       "blosc2": 32026}
# The library that a name of bitshuffle takes beside the filter itself.
CODEC = {"bitshuffle3": "zstd", "bitshuffle2": "lz4", "bitshuffle": "lz4", "bitshuffle-zstd": "zstd"}
OPTIONAL = h5py.h5z.FLAG_OPTIONAL


def library(name):
    found = ctypes.util.find_library(name)
    return ctypes.CDLL(found) if found else None


# ---- codecs that share nothing with those of Tessera but the libraries below both ----------------------------------


class Zstd:
    codec = 3

    def __init__(self):
        self.lib = library("zstd")
        for name in ("ZSTD_compress", "ZSTD_decompress", "ZSTD_compressBound"):
            getattr(self.lib, name).restype = ctypes.c_size_t

    def pack(self, data):
        to = ctypes.create_string_buffer(self.lib.ZSTD_compressBound(ctypes.c_size_t(len(data))))
        got = self.lib.ZSTD_compress(to, ctypes.c_size_t(len(to)), data, ctypes.c_size_t(len(data)), 3)
        return to.raw[:got]

    def unpack(self, data, size):
        to = ctypes.create_string_buffer(size + 1)
        got = self.lib.ZSTD_decompress(to, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
        assert got == size, got
        return to.raw[:size]


class Lz4:
    codec = 2

    def __init__(self):
        self.lib = library("lz4")

    def pack(self, data):
        to = ctypes.create_string_buffer(len(data) * 2 + 64)
        got = self.lib.LZ4_compress_default(data, to, len(data), len(to))
        return to.raw[:got]

    def unpack(self, data, size):
        to = ctypes.create_string_buffer(size + 1)
        assert self.lib.LZ4_decompress_safe(data, to, len(data), size) == size
        return to.raw[:size]


def lz4_stream(data, block):
    packed = b""
    for at in range(0, len(data), block):
        part = data[at:at + block]
        small = Lz4().pack(part)
        small = part if len(small) >= len(part) else small
        packed += struct.pack(">I", len(small)) + small
    return struct.pack(">QI", len(data), block) + packed


def bits_of(data, width):
    """Bit j of byte b of all elements, the first element at the lowest bit, for b and in it j."""
    elements = np.frombuffer(data, "u1").reshape(-1, width)
    return np.packbits(np.unpackbits(elements, axis=1, bitorder="little").T, axis=1, bitorder="little").tobytes()


def bytes_of(bits, width):
    rows = np.unpackbits(np.frombuffer(bits, "u1").reshape(width * 8, -1), axis=1, bitorder="little")
    return np.packbits(rows.T, axis=1, bitorder="little").tobytes()


def usual_block(width):
    return max(8192 // width // 8 * 8, 128)


def blocks(size, width, elements):
    """Where each block of a chunk begins and ends, the rest left out."""
    at, block = 0, elements * width
    while size - at >= 8 * width:
        end = at + min(block, (size - at) // (8 * width) * 8 * width)
        yield at, end
        at = end


def bitshuffle_stream(data, width, codec, elements=0):
    elements = elements or usual_block(width)
    out, end = b"", 0
    for at, end in blocks(len(data), width, elements):
        bits = bits_of(data[at:end], width)
        if codec:
            bits = codec.pack(bits)
            bits = struct.pack(">I", len(bits)) + bits
        out += bits
    head = struct.pack(">QI", len(data), elements * width) if codec else b""
    return head + out + data[end:]


def bitshuffle_bytes(stream, width, codec):
    size, block = struct.unpack(">QI", stream[:12])
    at, out = 12, b""
    for begin, end in blocks(size, width, block // width):
        stored = struct.unpack_from(">I", stream, at)[0]
        out += bytes_of(codec.unpack(stream[at + 4:at + 4 + stored], end - begin), width)
        at += 4 + stored
    return out + stream[at:]


# ---- reading ---------------------------------------------------------------------------------------------------------


def create(file, name, shape, dtype, chunks, filters):
    """A dataset whose filters this h5py need not have."""
    made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    made.set_chunk(chunks)
    for number, values in filters:
        if number == 2:
            made.set_shuffle()
        elif number == 3:
            made.set_fletcher32()
        else:
            made.set_filter(number, OPTIONAL, values)
    space = h5py.h5s.create_simple(shape)
    h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, made)
    return file[name]


def put_chunks(dataset, data, encode, mask=lambda number: 0):
    """All chunks of the dataset as `encode` makes them of their bytes."""
    rows, cols = dataset.chunks
    number = 0
    for i in range(0, data.shape[0], rows):
        for j in range(0, data.shape[1], cols):
            chunk = np.zeros((rows, cols), data.dtype)
            part = data[i:i + rows, j:j + cols]
            chunk[:part.shape[0], :part.shape[1]] = part
            dataset.id.write_direct_chunk((i, j), encode(chunk.tobytes(), number), mask(number))
            number += 1


def same(file, names):
    for name in names:
        run("compare", f"{file}:/{name}", f"{file}:/plain")


def test_written_chunk_by_chunk():
    data = integers(43, 39).astype("f8")
    write("chunks.h5", data, "plain")
    ways = {}
    for codec in ([Zstd()] if library("zstd") else []) + ([Lz4()] if library("lz4") else []):
        for elements in (0, 8, 24):
            ways[f"bitshuffle{codec.codec}_{elements}"] = (
                "bitshuffle", (0, 4, 8, elements, codec.codec, 3),
                lambda chunk, _, c=codec, e=elements: bitshuffle_stream(chunk, 8, c, e))
    ways["bitshuffle0"] = ("bitshuffle", (0, 4, 8, 16), lambda chunk, _: bitshuffle_stream(chunk, 8, None, 16))
    if library("zstd"):
        ways["zstd"] = ("zstd", (3,), lambda chunk, _: Zstd().pack(chunk))
        ways["zstd_frames"] = ("zstd", (3,), lambda chunk, _: Zstd().pack(chunk[:100]) + Zstd().pack(chunk[100:]))
    if library("lz4"):
        ways["lz4"] = ("lz4", (100,), lambda chunk, _: lz4_stream(chunk, 100))
    names = []
    with h5py.File("chunks.h5", "a") as file:
        for name, (way, values, encode) in ways.items():
            if way in HERE and CODEC.get(name[:11], way) in HERE:
                put_chunks(create(file, name, data.shape, "f8", (16, 10), [(IDS[way], values)]), data, encode)
                names.append(name)
    same("chunks.h5", names)


def test_masks():
    """Chunks that went without one of their filters, or without any."""
    if "zstd" not in HERE or not library("zstd"):
        return
    data = integers(43, 39).astype("f4")
    write("masks.h5", data, "plain")

    def shuffled(chunk):
        return np.frombuffer(chunk, "u1").reshape(-1, 4).T.tobytes()

    def encode(chunk, number):
        chunk = chunk if number & 1 else shuffled(chunk)
        return chunk if number & 2 else Zstd().pack(chunk)

    with h5py.File("masks.h5", "a") as file:
        made = create(file, "masked", data.shape, "f4", (16, 10), [(2, ()), (IDS["zstd"], (3,))])
        put_chunks(made, data, encode, lambda number: number & 3)
    same("masks.h5", ["masked"])
    run("compare", "masks.h5:/masked", "masks.h5:/plain", "--io", "hdf5")


def test_through_hdf5():
    """Filters of ours beside one that HDF5 alone undoes, and as many as no table here holds."""
    if "lzf" not in HERE:
        name = write("lzf.h5", integers(43, 39), chunks=(16, 10), compression="lzf")
        fails("info", name, code=1, says=["filter 32000", "install liblzf-dev and build again"])
        return
    data = integers(43, 39).astype("i4")
    write("mixed.h5", data, "plain")
    write("mixed.h5", data, "scaled", chunks=(16, 10), scaleoffset=0, compression="lzf")
    write("mixed.h5", data, "lzf", chunks=(16, 10), compression="lzf", shuffle=True)
    same("mixed.h5", ["scaled"])
    run("compare", "mixed.h5:/lzf", "mixed.h5:/plain", "--io", "hdf5")


# ---- damage ----------------------------------------------------------------------------------------------------------


def test_damage():
    """What a chunk says of itself is not believed; the message names the chunk, here the one with number 17."""
    data = integers(43, 39).astype("f8")

    def streams(way, chunk):
        if way == "zstd":
            good = Zstd().pack(chunk)
            return {"cut": good[:-9], "longer": Zstd().pack(chunk * 3), "shorter": Zstd().pack(chunk[:-8]),
                    "empty": b"\0"}
        good = lz4_stream(chunk, 512) if way == "lz4" else bitshuffle_stream(chunk, 8, Lz4(), 64)
        more = lz4_stream(chunk * 3, 512) if way == "lz4" else bitshuffle_stream(chunk * 3, 8, Lz4(), 64)
        return {"cut": good[:-9], "longer": more, "head": b"\xff" * 8 + good[8:],
                "block": good[:8] + bytes(4) + good[12:], "blocks": good[:8] + b"\xff" * 4 + good[12:],
                "stored": good[:12] + b"\x7f\xff\xff\xff" + good[16:],
                "empty": b"\0"}

    for way in ("zstd", "lz4", "bitshuffle"):
        if way not in HERE or CODEC.get(way, way) not in HERE or not library("zstd") or not library("lz4"):
            continue
        values = (0, 4, 8, 64, 2) if way == "bitshuffle" else (3,) if way == "zstd" else (512,)
        for kind in streams(way, bytes(1280)):
            def encode(chunk, number, bad=17):
                good = streams(way, chunk)
                if number == bad:
                    return good[kind]
                return Zstd().pack(chunk) if way == "zstd" else (
                    lz4_stream(chunk, 512) if way == "lz4" else bitshuffle_stream(chunk, 8, Lz4(), 64))

            with h5py.File("bad.h5", "w") as file:
                made = create(file, "A", (75, 39), "f8", (16, 10), [(IDS[way], values)])
                put_chunks(made, np.vstack([data, data[:32]]), encode)
            fails("multiply", "bad.h5:/A", "bad.h5:/A", "--transpose-b", "-o", "none.h5", "--device", "cpu", code=1,
                  says=["bad.h5:/A", "the 16x10 chunk at (64, 10)", "copy it again"])
        fails("compare", "bad.h5:/A", "bad.h5:/A", "--io", "hdf5", code=1, says="bad.h5:/A")


WAYS = {"gzip:1": "gzip", "lzf": "lzf", "lz4": "lz4", "zstd": "zstd", "zstd:19": "zstd", "bzip2:3": "bzip2",
        "bitshuffle": "bitshuffle", "bitshuffle-zstd:1": "bitshuffle", "blosc": "blosc", "blosc-zstd:3": "blosc",
        "blosc-lz4hc": "blosc", "blosc-zlib:9": "blosc", "blosc2": "blosc2", "blosc2-zstd:3": "blosc2"}


def is_here(way):
    name = WAYS[way]
    return (name in HERE or name == "gzip") and CODEC.get(way.split(":")[0], name) in (*HERE, "gzip")


def refused(*names, says, options=()):
    """One line of error, and nothing written."""
    fails("multiply", *names, "-o", "none.h5", "--device", "cpu", *options, code=1, says=says)
    assert not os.path.exists("none.h5") and not leftovers(), leftovers()


def test_wrong_length():
    """A chunk that unpacks to more than it has room for, and one that cannot be decoded, of each filter: the message
    names it, whoever decodes."""
    write("a.h5", np.ones((75, 4), "f4")), write("b.h5", np.ones((4, 39), "f4"))  # little room, packed
    made = ["multiply", "a.h5", "b.h5", "--force", "--device", "cpu"]
    for way in filter(is_here, WAYS):
        run(*made, "-o", "long.h5", "--compress", way, "--chunk", "75x39")
        with h5py.File("long.h5") as file:
            longer = file["C"].id.read_direct_chunk((0, 0))
        assert longer[0] == 0, f"{way}: the long chunk is stored as it is"
        for kind in ("longer", "cut"):
            run(*made, "-o", "bad.h5", "--compress", way, "--chunk", "16x10")
            with h5py.File("bad.h5", "a") as file:
                chunk = file["C"].id.read_direct_chunk((64, 10))[1]
                file["C"].id.write_direct_chunk((64, 10), longer[1] if kind == "longer" else chunk[:len(chunk) // 2])
            for options in ((), ("--io", "hdf5")):
                refused("bad.h5:/C", "b.h5", "--transpose-b", options=options,
                        says=["bad.h5:/C", "the 16x10 chunk at (64, 10)", "copy it again"])


def test_chunk_sizes():
    """Chunks of nothing, of 8 GiB, and one that is larger than the memory allowed and is not even decoded."""
    with h5py.File("good.h5", "w") as file:
        file.create_dataset("A", data=integers(24, 20), chunks=(8, 4), compression="gzip")
    good = open("good.h5", "rb").read()
    sizes = struct.pack("<III", 8, 4, 4)
    assert good.count(sizes) == 1, good.count(sizes)
    for bad in ((0, 0), (0, 4), (32768, 65536)):
        with open("sizes.h5", "wb") as file:
            file.write(good.replace(sizes, struct.pack("<III", *bad, 4)))
        refused("sizes.h5:/A", "sizes.h5:/A", options=["--transpose-b"], says="sizes.h5")
    with h5py.File("large.h5", "w") as file:
        made = file.create_dataset("A", shape=(8192, 8192), dtype="f4", chunks=(8192, 8192), compression="gzip")
        made.id.write_direct_chunk((0, 0), b"nothing of gzip")
    limits = ["--host-memory", "150MiB", "--memory", "150MiB"]
    refused("large.h5:/A", "large.h5:/A", options=limits, says=["smaller chunks (h5repack -l /A"])


# ---- plugins --------------------------------------------------------------------------------------------------------


def test_written_by_plugins():
    """By h5py itself, and by HDF5's plugins."""
    for folder in FOLDERS:
        h5py.h5pl.append(folder)
    try:
        import hdf5plugin  # noqa: F401, which tells h5py where more are
    except ImportError:
        pass
    ways = {"lzf": (), "lz4": (0,), "lz4 ": (96,), "bzip2": (3,), "zstd": (5,), "bitshuffle": (0, 2),
            "bitshuffle ": (0, 0), "bitshuffle  ": (8, 2)}
    ways.update({"blosc" + " " * i: (0, 0, 0, 0, 5, i % 3, codec) for i, codec in enumerate((0, 1, 2, 4, 5, 1))})
    for dtype in ("f4", "f8", "i2", "u1"):
        data = integers(43, 39).astype(dtype)
        file = f"plugins_{dtype}.h5"
        write(file, data, "plain")
        names = []
        for number, (way, values) in enumerate(ways.items()):
            way = way.strip()
            if way not in HERE or CODEC.get(way, way) not in HERE or not h5py.h5z.filter_avail(IDS[way]):
                continue
            for chain in ({}, {"shuffle": True, "fletcher32": True}):
                names.append(f"{way}{number}{len(chain)}")
                write(file, data, names[-1], chunks=(16, 10), compression="lzf" if way == "lzf" else IDS[way],
                      compression_opts=None if way == "lzf" else values, **chain)
        same(file, names[dtype == "u1"::1 if dtype == "f4" else 3])
        print(f"{dtype}: {len(names)} ways of h5py and its plugins")


def test_blosc2():
    """What hdf5plugin wrote: each codec, in blocks of two and three dimensions that reach beyond their chunks."""
    file = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../data/blosc2/blosc2.h5")
    if "blosc2" not in HERE:
        fails("compare", f"{file}:/lz4", f"{file}:/expected", code=1, says="install libblosc2-dev and build again")
        return
    for name in ("blosclz", "lz4", "lz4hc", "zlib", "zstd", "delta", "f4", "cube[1,:,:]"):
        for options in ((), ("--io", "hdf5")):
            run("compare", f"{file}:/{name}", f"{file}:/expected", *options)
    run("compare", f"{file}:/none", f"{file}:/expected[:20,:10]")
    good = open(file, "rb").read()
    with h5py.File(file) as f:
        chunk = f["lz4"].id.get_chunk_info(0)
    frame = good[chunk.byte_offset:chunk.byte_offset + chunk.size]
    head = struct.unpack(">I", frame[11:15])[0]
    shapes = frame.index(b"b2nd", frame.index(b"b2nd") + 1) if frame.count(b"b2nd") > 1 else frame.index(b"b2nd")
    lies = {"an unknown codec": (head + 2, b"\xd5"), "a filter of a plugin": (head + 16, b"\x20"),
            "a larger chunk": (head + 4, b"\xff\xff\xff\x7f"), "another end": (16, b"\x7f"),
            "a larger frame": (30, b"\x00\x00\x00\x01"), "no layers": (shapes, b"none"),
            "another head": (11, b"\x7f\xff\xff\xff"), "an element of 0 bytes": (head + 3, b"\0")}
    for lie, (at, text) in lies.items():
        with open("lie.h5", "wb") as f:
            at += chunk.byte_offset
            f.write(good[:at] + text + good[at + len(text):])
        refused("lie.h5:/lz4", "lie.h5:/lz4", options=["--transpose-b"],
                says=["lie.h5:/lz4", "the 300x500 chunk at (0, 0)", "copy it again"])


# ---- writing ---------------------------------------------------------------------------------------------------------


def read_by_hand(dataset, decode):
    """By decoding each chunk here, after undoing what its mask leaves."""
    out = np.zeros(dataset.shape, dataset.dtype)
    rows, cols = dataset.chunks
    for number in range(dataset.id.get_num_chunks()):
        info = dataset.id.get_chunk_info(number)
        mask, stored = dataset.id.read_direct_chunk(info.chunk_offset)
        i, j = info.chunk_offset
        chunk = stored if mask & 1 else decode(stored, rows * cols * dataset.dtype.itemsize)
        part = np.frombuffer(chunk, dataset.dtype).reshape(rows, cols)[:out.shape[0] - i, :out.shape[1] - j]
        out[i:i + rows, j:j + cols] = part
    return out


def test_compress():
    a, b = integers(70, 30), integers(30, 61).astype("f8")
    want = a.astype("f8") @ b
    write("a.h5", a), write("b.h5", b)
    hand = {}
    if library("zstd"):
        hand = {"zstd": lambda s, size: Zstd().unpack(s, size), "zstd:19": lambda s, size: Zstd().unpack(s, size),
                "bitshuffle-zstd:1": lambda s, size: bitshuffle_bytes(s, 8, Zstd())}
    if library("lz4"):
        hand["bitshuffle"] = lambda s, size: bitshuffle_bytes(s, 8, Lz4())
    by_h5py, by_hand = 0, 0
    for number, (way, name) in enumerate(WAYS.items()):
        if not is_here(way):
            fails("multiply", "a.h5", "b.h5", "-o", "none.h5", "--compress", way, code=1, says="build again")
            continue
        shuffle = ["--shuffle"] if number % 2 == 0 and way not in hand else []
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "16x20", "--compress",
            way, "--verify", *shuffle, ranks=number % 3)
        with h5py.File("c.h5") as file:
            c = file["C"]
            filters = [c.id.get_create_plist().get_filter(i) for i in range(1 + len(shuffle))]
            assert filters[-1][0] == IDS.get(name, 1), filters
            assert c.id.get_storage_size() < c.nbytes, f"{way} saves nothing"
            try:
                got = c[:]
                by_h5py += 1
            except OSError:  # h5py lacks the filter, or a part of it
                got = None
            if got is not None:
                assert np.array_equal(got, want), f"{way}: wrong for h5py"
            if way in hand:
                assert np.array_equal(read_by_hand(c, hand[way]), want), f"{way}: wrong by hand"
                by_hand += 1
            assert got is not None or way in hand or not h5py.h5z.filter_avail(IDS[name]), f"{way}: not read by h5py"
    print(f"{by_h5py} ways read by h5py, {by_hand} by hand")


def test_generate():
    """The same elements as without chunks, by any number of ranks and in both orders."""
    if "zstd" not in HERE:
        return
    for order in ("row", "col"):
        made = ["--shape", "203x151", "--type", "f64", "--seed", "5", "--order", order, "--force"]
        run("generate", "-o", "plain.h5", *made)
        for number, how in enumerate((["--compress", "zstd:1"], ["--compress", "bitshuffle", "--chunk", "50x40"],
                                      ["--chunk", "203x1"], ["--compress", "gzip", "--shuffle", "--chunk", "300x300"])):
            run("generate", "-o", "chunked.h5", *made, *how, ranks=number)
            run("compare", "chunked.h5", "plain.h5", "--order", order)
            with h5py.File("chunked.h5") as file:
                assert file["C"].chunks and not leftovers(), (file["C"].chunks, leftovers())
    run("generate", "-o", "chunked.h5", "--shape", "0x7", "--compress", "zstd", "--force", ranks=2)
    fails("generate", "-o", "none.h5", "--shape", "5x5", "--shuffle", code=2, says="--compress")
    fails("generate", "-o", "none.npy", "--shape", "5x5", "--compress", "zstd", code=2, says="none.npy")


def test_plugins():
    """HDF5's plugins are loaded from the folder that is named, and from no other."""
    folder = os.path.join(os.getcwd(), "plugins here")
    os.makedirs(folder)
    shutil.copy(os.environ["TSR_PLUGIN"], folder)
    data = integers(43, 39)
    write("flip.h5", data, "plain")
    with h5py.File("flip.h5", "a") as file:
        made = create(file, "flipped", data.shape, "f4", (16, 10), [(40123, ())])
        put_chunks(made, data, lambda chunk, _: (np.frombuffer(chunk, "u1") ^ 0x5a).tobytes())
    names = ["flip.h5:/flipped", "flip.h5:/plain"]
    fails("compare", *names, code=1, says=["filter 40123", "plugins are not loaded unless --plugins names"])
    fails("compare", *names, "--plugins", "none", code=2, says="--plugins none: there is no such folder")
    os.mkdir("empty")
    fails("compare", *names, "--plugins", "empty", code=1, says=["filter 40123", "no plugin"])
    run("compare", *names, "--plugins", folder)
    run("compare", *names, f"--plugins={folder}", ranks=2)
    run("compare", *names, environment={"HDF5_PLUGIN_PATH": folder})
    assert "40123" in run("info", names[0], "--plugins", folder).out
    run("multiply", names[0], names[0], "--transpose-b", "-o", "flip_c.h5", "--plugins", folder, ranks=2)
    with h5py.File("flip_c.h5") as file:
        assert np.array_equal(file["C"][:], data @ data.T)
    # a plugin gives less than a chunk, or more, or cannot decode the one with number 17
    for how, chunk in ((1, "at (0, 0)"), (2, "at (0, 0)"), (3, "at (64, 10)")):
        with h5py.File("wrong.h5", "w") as file:
            made = create(file, "A", (75, 39), "f4", (16, 10), [(40123, (how,))])
            put_chunks(made, integers(75, 39),
                       lambda bytes_, number: b"\x17" * 640 if number == 17 else bytes(b ^ 0x5a for b in bytes_))
        refused("wrong.h5:/A", "wrong.h5:/A", options=["--transpose-b", "--plugins", folder],
                says=["wrong.h5:/A", f"the 16x10 chunk {chunk}"])
    refused(*names, options=["--plugins", "empty"], says="no plugin")
    fails("multiply", *names, "-o", "none.h5", "--plugins", "none", code=2,
          says="--plugins none: there is no such folder")
    assert not os.path.exists("none.h5")


main(globals())
