"""Broken files: good ones of every kind, made here with h5py, and what a seeded hand does to them. No file of others.

Each file has a name that says its kind, what was done and with which number: the same seed makes the same files."""
import io
import json

import random
import struct

import h5py
import numpy as np

ROWS, COLS = 24, 20
DATA = np.random.default_rng(7).integers(-4, 5, (ROWS, COLS)).astype("f4")
GZIP = {"chunks": (8, 8), "compression": "gzip", "shuffle": True}


# ---- good files
# --------------------------------------------------------------------------------------------------------


def plain(file, **how):
    file.create_dataset("C", data=DATA, **how)


def many_attributes(file):
    plain(file)
    for i in range(40):
        file["C"].attrs[f"attribute {i}"] = "text " * i if i % 2 else np.arange(i + 1.0)
    file.attrs["references"] = np.array([file["C"].ref], dtype=h5py.ref_dtype)


def groups(file):
    """As pandas stores a table, and Octave a matrix."""
    frame = file.create_group("frame")
    frame.attrs["pandas_type"] = np.bytes_("frame")
    frame.create_dataset("axis0", data=np.array([b"one", b"two"]))
    frame.create_dataset("block0_items", data=np.array(["a", "b"], dtype=h5py.string_dtype()))
    frame.create_dataset("block0_values", data=DATA)
    value = file.create_group("value")
    value.create_dataset("type", data=np.bytes_("matrix"))
    value.create_dataset("value", data=np.zeros(3, dtype=[("r", "f8"), ("i", "f8")]))
    file["again"] = h5py.SoftLink("/frame/block0_values")


def matlab(file):
    plain(file)
    file["C"].attrs["MATLAB_class"] = np.bytes_("single")
    file.create_group("#refs#").create_dataset("a", data=np.arange(4, dtype="u2").reshape(1, 4))


def run_record(file):
    """What a run leaves beside C."""
    plain(file)
    run = file.create_group("C.run")
    lanes = np.zeros(2, dtype=[("rank", "i4"), ("host", "S64"), ("read_seconds", "f8"), ("read_bytes", "i8")])
    run.create_dataset("ranks", data=lanes)
    for name, value in (("seconds", 1.5), ("kernel", "blas"), ("m", 24), ("warnings", "one\ntwo")):
        run.attrs[name] = value


def cube(file, **how):
    """Three dimensions, of which a slice chooses a matrix."""
    file.create_dataset("C", data=np.stack([DATA, -DATA, DATA]), **how)


KINDS = {
    "contiguous-old": (plain, {"libver": "earliest"}, {}),
    "contiguous-new": (plain, {"libver": "latest"}, {}),
    "chunked-old": (plain, {"libver": "earliest"}, GZIP),
    "chunked-new": (plain, {"libver": "latest"}, GZIP),
    "chunked-growing": (plain, {"libver": "latest"}, dict(GZIP, maxshape=(None, COLS))),
    "chunked-growing-twice": (plain, {"libver": "latest"}, dict(GZIP, maxshape=(None, None))),
    "chunked-checked": (plain, {"libver": "earliest"}, {"chunks": (8, 8), "fletcher32": True}),
    "chunked-plain": (plain, {"libver": "earliest"}, {"chunks": (5, 7)}),
    "user-block": (plain, {"userblock_size": 512}, {}),
    "matlab": (matlab, {"userblock_size": 512}, {}),
    "groups-old": (groups, {"libver": "earliest"}, {}),
    "groups-new": (groups, {"libver": "latest"}, {}),
    "attributes": (many_attributes, {}, {}),
    "attributes-new": (many_attributes, {"libver": "latest"}, {}),
    "record": (run_record, {}, {}),
}


def compact(file):
    space = h5py.h5s.create_simple((ROWS, COLS))
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(file.id, b"C", h5py.h5t.NATIVE_FLOAT, space, layout).write(space, space, DATA)


def view(file):
    """A virtual dataset of what lies in the same file, which no other matrix is."""
    file.create_dataset("stack", data=np.stack([DATA, -DATA]), chunks=(1, 8, 8))
    layout = h5py.VirtualLayout(shape=(ROWS, COLS), dtype="f4")
    source = h5py.VirtualSource(".", "stack", shape=(2, ROWS, COLS), dtype="f4")
    layout[:10] = source[1, :10]
    layout[12:] = source[0, 12:]
    file.create_virtual_dataset("C", layout, fillvalue=3)


KINDS["view"] = (view, {"libver": "latest"}, {})
KINDS["compact"] = (compact, {}, {})
KINDS["cube"] = (cube, {"libver": "earliest"}, {})
KINDS["cube-chunked"] = (cube, {"libver": "earliest"}, dict(GZIP, chunks=(1, 8, 8)))
KINDS["cube-deep"] = (cube, {"libver": "latest"}, dict(GZIP, chunks=(2, 8, 8)))


def make(folder, kind):
    """The bytes of a good file, and which of them are elements rather than what describes them."""
    name = folder / f"{kind}.h5"
    fill, how, dataset = KINDS[kind]
    elements = []
    with h5py.File(name, "w", **how) as file:
        fill(file, **dataset)
        file.flush()

        def note(_, item):
            if isinstance(item, h5py.Dataset) and item.id.get_offset() is not None:
                elements.append((item.id.get_offset(), item.nbytes))
            elif isinstance(item, h5py.Dataset) and item.chunks:
                infos = [item.id.get_chunk_info(i) for i in range(item.id.get_num_chunks())]
                elements.extend((info.byte_offset, info.size) for info in infos)

        file.visititems(note)
    content = name.read_bytes()
    described = np.ones(len(content), bool)
    for at, size in elements:
        described[at:at + size] = False
    return content, np.flatnonzero(described)


# ---- what is done to them
# ----------------------------------------------------------------------------------------------

EXTREMES = [0, 1, 2**8 - 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


def flip(chance, data, places):
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        data[chance.choice(places)] ^= 1 << chance.randrange(8)


def overwrite(chance, data, places):
    for _ in range(chance.choice((1, 2, 8))):
        data[chance.choice(places)] = chance.choice((0, 1, 0x7f, 0x80, 0xfe, 0xff, chance.randrange(256)))


def cut(chance, data, _):
    del data[chance.randrange(len(data)):]


def length(chance, data, places):
    """A field of 1 to 8 bytes takes an extreme value."""
    at, size = int(chance.choice(places)), chance.choice((1, 2, 4, 8))
    data[at:at + size] = (chance.choice(EXTREMES) % (1 << 8 * size)).to_bytes(size, "little")


def addresses(data, places):
    """Where an address of something in the file may stand."""
    described = set(places.tolist())
    return [at for at in places if at % 4 == 0 and at + 7 in described
            and 64 <= struct.unpack_from("<Q", data, at)[0] < len(data)]


def link(chance, data, places):
    """An address becomes another, or that of something near it: trees with loops, chunks that share their bytes."""
    found = addresses(data, places)
    if not found:
        return flip(chance, data, places)
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.choice(found)
        to = chance.choice([struct.unpack_from("<Q", data, chance.choice(found))[0], max(0, int(at) - 24) // 8 * 8,
                            len(data) - 8, len(data) * 2, 2**64 - 1, 0])
        struct.pack_into("<Q", data, at, to)


SIGNATURES = (b"TREE", b"SNOD", b"HEAP", b"OHDR", b"OCHK", b"BTHD", b"BTLF", b"FRHP", b"FAHD", b"FADB", b"EAHD",
              b"EAIB",
              b"GCOL", b"FHDB")


def structure(chance, data, places):
    """The first fields behind a signature: type, level, number of entries, siblings, children."""
    found = [at for signature in SIGNATURES for at in range(len(data) - 64) if data[at:at + 4] == signature]
    if not found:
        return overwrite(chance, data, places)
    at = chance.choice(found)
    kind = chance.randrange(4)
    if kind == 0:
        data[at + 4 + chance.randrange(4)] = chance.choice((0, 1, 2, 7, 0x7f, 0xff))
    elif kind == 1:
        struct.pack_into("<H", data, at + 6, chance.choice((0, 1, 64, 0x7fff, 0xffff)))
    else:  # siblings, the first child: itself, or any other
        struct.pack_into("<Q", data, at + chance.choice((8, 16, 24, 32, 40, 48)),
                         chance.choice([at, chance.choice(found), 8]))


def swap(chance, data, places):
    """Two pieces of what describes change places."""
    size = chance.choice((4, 8, 16, 32))
    one, other = (min(int(chance.choice(places)), len(data) - size) for _ in range(2))
    data[one:one + size], data[other:other + size] = data[other:other + size], data[one:one + size]


HANDS = {"flip": flip, "overwrite": overwrite, "cut": cut, "length": length, "link": link, "structure": structure,
         "swap": swap}


def mutated(folder, seed, count):
    """(name, bytes) of `count` files, kinds and hands in turn."""
    chance = random.Random(seed)
    good = {kind: make(folder, kind) for kind in KINDS}
    turns = [(kind, hand) for kind in KINDS for hand in HANDS]
    chance.shuffle(turns)
    for number in range(count):
        kind, hand = turns[number % len(turns)]
        content, places = good[kind]
        data = bytearray(content)
        HANDS[hand](chance, data, places)
        yield f"{number}-{kind}-{hand}.h5", bytes(data)


FILTERS = ("gzip:1", "lzf", "zstd", "lz4", "bzip2", "bitshuffle", "bitshuffle-zstd", "blosc", "blosc-zlib",
           "blosc-zstd")


def compressed(folder, tessera, seed, each):
    """(name, bytes) of files whose compressed bytes are broken, `each` of every filter that the program has.
    tessera(*args) runs it, and says whether it could."""
    chance = random.Random(seed)
    made = 0
    for name, data in (("a", DATA), ("one", np.eye(COLS, dtype="f4"))):
        with h5py.File(folder / f"{name}.h5", "w") as file:
            file["C"] = data
    for number, filter in enumerate(FILTERS):
        good = folder / f"{number}-{filter}.h5"
        if not tessera("multiply", folder / "a.h5", folder / "one.h5", "-o", f"{good}:/C", "--device", "cpu", "--quiet",
                       "--chunk", f"{ROWS // 2}x{COLS}", "--compress", filter):
            continue
        made += 1
        with h5py.File(good) as file:
            chunks = [file["C"].id.get_chunk_info(i) for i in range(2)]
        places = np.concatenate([np.arange(chunk.byte_offset, chunk.byte_offset + chunk.size) for chunk in chunks])
        for turn in range(each):
            data = bytearray(good.read_bytes())
            hand = ("flip", "overwrite", "length", "swap")[turn % 4]
            HANDS[hand](chance, data, places)
            yield f"{number}{turn:04d}-{filter.replace(':', '')}-{hand}.h5", bytes(data)
    assert made > 0, "no filter writes"


# ---- made by hand
# ------------------------------------------------------------------------------------------------------


def replaced(folder, kind, old, new, count=-1):
    content = make(folder, kind)[0]
    assert old in content, f"no {old!r} in {kind}"
    return content.replace(old, new, count)


def dims(rows, cols):
    return struct.pack("<QQ", rows, cols)


def written(folder, name, fill, **how):
    with h5py.File(folder / name, "w", **how) as file:
        fill(file)
    return (folder / name).read_bytes()


def nested(file):
    group = file
    for _ in range(3000):
        group = group.create_group("g")
    group.create_dataset("C", data=DATA)


def cycles(file):
    plain(file)
    file["group/self"] = h5py.SoftLink("/group/self")
    file["one"], file["two"] = h5py.SoftLink("/two"), h5py.SoftLink("/one")
    file["group/root"] = file["/"]
    file["group/outside"] = h5py.ExternalLink("cycles.h5", "/group/outside")


def names(file):
    file.create_dataset("a\x1b[31m\nb\x07", data=DATA)
    file.create_dataset("long" * 4000, data=DATA)
    file.create_dataset(b"\xff\xfe latin", data=DATA)


def huge(file):
    file.create_dataset("C", shape=(2**31, 2**31), dtype="f8", chunks=(64, 64))
    file.create_dataset("D", shape=(2**62, 4), dtype="f4", chunks=(1024, 4), maxshape=(None, 4))
    file.create_dataset("chunk", shape=(30000, 30000), dtype="f4", chunks=(30000, 30000))


def unknown_filter(file):
    layout = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    layout.set_chunk((8, 8))
    layout.set_filter(31999, h5py.h5z.FLAG_OPTIONAL, (1, 2, 3))
    space = h5py.h5s.create_simple((ROWS, COLS))
    h5py.h5d.create(file.id, b"C", h5py.h5t.NATIVE_FLOAT, space, layout)


def handmade(folder):
    """(name, bytes) of what chance would hardly make."""
    good = dims(ROWS, COLS)
    for kind in ("contiguous-old", "chunked-old", "compact"):
        for i, bad in enumerate((dims(0, COLS), dims(2**63, COLS), dims(2**64 - 1, 2**64 - 1), dims(2**32, 2**32),
                                 dims(2**62, 2), dims(ROWS + 1, COLS), dims(1, 1))):
            yield f"dims-{i}-{kind}.h5", replaced(folder, kind, good, bad)
    chunk = struct.pack("<III", 8, 8, 4)
    for i, bad in enumerate(((0, 0, 4), (2**31, 2**31, 4), (2**32 - 1, 8, 4), (8, 8, 0), (1, 1, 4), (8, 8, 2**31))):
        yield f"chunk-{i}.h5", replaced(folder, "chunked-old", chunk, struct.pack("<III", *bad), 1)
    content, places = make(folder, "chunked-old")
    at = content.index(b"TREE", content.index(b"TREE") + 4)
    for i, child in enumerate((at, 0, len(content) - 4, 2**64 - 1, 2**63)):
        for field in (8, 16, 24 + 32, 24 + 32 + 40):  # siblings and the first children of a tree of chunks
            data = bytearray(content)
            struct.pack_into("<Q", data, at + field, child)
            yield f"tree-{i}-{field}.h5", bytes(data)
    yield "nested.h5", written(folder, "nested.h5", nested)
    yield "nested-new.h5", written(folder, "nested.h5", nested, libver="latest")
    yield "cycles.h5", written(folder, "cycles.h5", cycles)
    yield "names.h5", written(folder, "names.h5", names)
    yield "huge.h5", written(folder, "huge.h5", huge)
    yield "filter.h5", written(folder, "filter.h5", unknown_filter)
    yield "empty.h5", b""
    yield "signature.h5", b"\x89HDF\r\n\x1a\n"
    yield "zeros.h5", b"\x89HDF\r\n\x1a\n" + bytes(4096)
    yield "text.h5", b"1 2 3\n4 5 6\n"
    yield "noise.h5", random.Random(5).randbytes(9000)


def arrays(seed, count):
    """Broken .npy files."""
    chance = random.Random(seed)
    text = io.BytesIO()
    np.save(text, DATA)
    good = text.getvalue()
    for i, (old, new) in enumerate(((b"(24, 20)", b"(%d, 20)" % 2**62), (b"(24, 20)", b"(480,)"), (b"<f4", b"|O"),
                                    (b"<f4", b"<f9999999"), (b"False", b"True"), (b"\x76\x00", b"\xff\xff"))):
        yield f"hand-{i}.npy", good.replace(old, new, 1)
    for number in range(count):
        data = bytearray(good)
        chance.choice((flip, overwrite, cut))(chance, data, range(140))
        yield f"{number}.npy", bytes(data)


def logs(seed, count):
    """Broken logs of runs, which info reads."""
    chance = random.Random(seed)
    good = json.dumps({"tessera": "0.1.0", "status": "done", "m": 24, "seconds": 0.5,
                       "ranks": [{"rank": 0, "host": "x"}],
                       "warnings": ["a"]}, indent=1).encode()
    yield "deep.json", b"[" * 100000
    yield "deeper.json", b'{"a":' * 50000 + b"1" + b"}" * 50000
    yield "number.json", b'{"tessera": "0.1.0", "m": ' + b"9" * 5000 + b"}"
    yield "string.json", b'{"tessera": "' + b"x" * 1000000
    for number in range(count):
        data = bytearray(good)
        chance.choice((flip, overwrite, cut))(chance, data, range(len(data)))
        yield f"{number}.json", bytes(data)
