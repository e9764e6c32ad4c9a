"""Memory limits hold whatever a file says: chunks that would take more to decode are refused before they are touched,
and all else is read in pieces that fit. Peaks are those of the largest process, as wait4 gives them. The files are
small: chunks of zeros, chunks never written, and holes."""
import functools
import os
import resource
import subprocess
import zlib

import h5py

from lib import command_line, ENVIRONMENT, main, np, read, write

H, P = h5py.h5t, h5py.h5p
MIB = 1 << 20
LIMIT, LIBRARIES = 64 * MIB, 24 * MIB  # beside what a small run takes in any case
LIMITS = ("--host-memory", LIMIT, "--memory", LIMIT, "--quiet")
BIG = 8192  # a chunk of BIG x BIG is four times the limit


def peak(*args, code, says="", ranks=0, address_space=0):
    """Bytes of the largest process; the exit code and a text of the error are looked at."""
    bound = (lambda: resource.setrlimit(resource.RLIMIT_AS, (address_space,) * 2)) if address_space else None
    process = subprocess.Popen(command_line(args, ranks), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=dict(ENVIRONMENT, OPENBLAS_NUM_THREADS="1"), start_new_session=True,
                               preexec_fn=bound)
    said = process.stdout.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == code and says in said, (args, process.returncode, said)
    return used.ru_maxrss * 1024


def i24(order=H.ORDER_LE):
    t = H.STD_I32LE.copy()
    t.set_order(order)
    t.set_precision(24)
    t.set_size(3)
    return t


@functools.lru_cache
def deflated(size):
    """That many zeros."""
    z = zlib.compressobj(9)
    parts = [z.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join(parts + [z.compress(bytes(size % MIB)), z.flush()])


def shuffled(stream, width):
    whole = len(stream) // width * width
    return np.frombuffer(stream, "u1", whole).reshape(-1, width).T.tobytes() + stream[whole:]


def dataset(file, name, shape, chunks=None, t=H.IEEE_F32LE, gzip=False, shuffle=False, sums=False, other=None,
            late_shuffle=False, holes=False, fill=None, unpacked=None, mask=0):
    """`unpacked`: the first chunk is written, and unpacks to so many zeros; `mask`: bits of filters that it skips.
    `holes`: space is there, nothing in it."""
    p = P.create(P.DATASET_CREATE)
    if chunks:
        p.set_chunk(chunks)
    if other:
        p.set_filter(*other)
    if shuffle:
        p.set_shuffle()
    if gzip:
        p.set_deflate(9)
    if late_shuffle:
        p.set_shuffle()
    if sums:
        p.set_fletcher32()
    if holes:
        p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        p.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    if fill is not None:
        p.set_fill_value(np.array(fill))
    d = h5py.h5d.create(file.id, name.encode(), t, h5py.h5s.create_simple(shape), p)
    if unpacked:
        stream = deflated(unpacked)
        d.write_direct_chunk((0, 0), shuffled(stream, t.get_size()) if late_shuffle and not mask & 2 else stream, mask)


def product(name, *options, **how):
    return peak("multiply", f"m.h5:/{name}[:8,:8]", "b.h5", "-o", "c.h5", "--force", *LIMITS, *options, **how)


def fitting(*args, code, base, **how):
    used = product(*args, code=code, **how)
    assert used <= base + LIMIT + LIBRARIES, (args, used / MIB, base / MIB)


def bases():
    """What runs take that read next to nothing."""
    write("b.h5", np.eye(8, dtype="f4"))
    write("m.h5", np.ones((8, 8), "f4"), "small")
    return {ranks: product("small", code=0, ranks=ranks) for ranks in (0, 2)}


def test_chunks_too_large():
    base = bases()
    chunk = (BIG, BIG)
    with h5py.File("m.h5", "w") as file:
        dataset(file, "gzip", chunk, chunk, gzip=True, unpacked=4 * BIG * BIG)
        dataset(file, "i24", chunk, chunk, i24(), gzip=True, unpacked=3 * BIG * BIG)
        dataset(file, "i24 big-endian", chunk, chunk, i24(H.ORDER_BE), gzip=True, shuffle=True)
        dataset(file, "1xN", (8, BIG * BIG), (1, BIG * BIG), gzip=True)
        dataset(file, "Nx1", (BIG * BIG, 8), (BIG * BIG, 1), gzip=True)
        dataset(file, "sums", chunk, chunk, sums=True)
        dataset(file, "nbit", chunk, chunk, i24(), other=(h5py.h5z.FILTER_NBIT, 0))
        dataset(file, "scaleoffset", chunk, chunk, H.STD_I32LE, other=(h5py.h5z.FILTER_SCALEOFFSET, 0, (2, 0)))
        if h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
            dataset(file, "szip", chunk, chunk, other=(h5py.h5z.FILTER_SZIP, 0, (4, 32)))
        names = list(file)
    for name in names:
        for ranks in (0, 2) if name in ("gzip", "i24") else (0,):
            for options in ((), ("--io", "hdf5")) if name in ("gzip", "nbit") else ((),):
                used = product(name, *options, code=1, says="smaller chunks (h5repack -l /" + name, ranks=ranks)
                assert used <= base[ranks] + LIBRARIES, (name, ranks, used / MIB)
    for command in (["info", "m.h5"], ["info", "m.h5:/i24"]):
        assert peak(*command, code=0) <= base[0] + LIBRARIES, command


def test_read_in_pieces():
    """What needs no whole chunk, or one that fits, is read within the limit."""
    base = bases()
    with h5py.File("m.h5", "w") as file:
        dataset(file, "fits", (BIG, BIG), (1024, 1024), gzip=True, unpacked=4 * MIB)
        dataset(file, "i24", (BIG, BIG), (1024, 1024), i24(), gzip=True, unpacked=3 * MIB)
        dataset(file, "nbit", (BIG, BIG), (1024, 1024), i24(), other=(h5py.h5z.FILTER_NBIT, 0))
        dataset(file, "no filter", (BIG, BIG), (BIG, BIG), holes=True)
        dataset(file, "i24 no filter", (BIG, BIG), (BIG, BIG), i24(), holes=True)
        dataset(file, "never written", (BIG, BIG), (BIG, BIG), fill=np.float32(7))
        dataset(file, "contiguous", (BIG, BIG), t=i24(), holes=True)
        dataset(file, "contiguous big-endian", (BIG, BIG), t=i24(H.ORDER_BE), holes=True)
        dataset(file, "contiguous never written", (BIG, BIG), t=i24(H.ORDER_BE), fill=np.int32(7))
        dataset(file, "tiny chunks", (1000, 1000), (1, 1), i24())
        names = list(file)
    for name in names:
        for ranks in (0, 2) if name in ("i24", "contiguous") else (0,):
            fitting(name, code=0, base=base[ranks], ranks=ranks)
        expected = 7 if "never written" in name else 0
        assert np.array_equal(read("c.h5"), np.full((8, 8), expected)), name
    for name in ("fits", "i24", "no filter", "contiguous"):
        fitting(name, "--io", "hdf5", code=0, base=base[0])
    write("tall.h5", np.ones((BIG, 1), "f4"))
    for name, options in (("i24", ()), ("i24", ("--io", "hdf5")), ("contiguous", ()), ("fits", ("--io", "hdf5"))):
        used = peak("multiply", f"m.h5:/{name}", "tall.h5", "-o", "c.h5", "--force", *LIMITS, *options, code=0)
        assert used <= base[0] + LIMIT + LIBRARIES, (name, used / MIB)
    used = peak("multiply", "m.h5:/tiny chunks", "tall.h5[:1000,:]", "-o", "c.h5", "--force", *LIMITS, "--io", "hdf5",
                code=0)
    assert used <= base[0] + LIMIT + LIBRARIES, ("tiny chunks", used / MIB)


def test_more_than_a_chunk():
    """A stream that unpacks to much more than its chunk has room for, also where the chunk skips another filter."""
    base = bases()
    long_double = H.NATIVE_LDOUBLE
    with h5py.File("m.h5", "w") as file:
        for fits in ("", "fits "):
            def made(what, t=H.IEEE_F32LE, **filters):
                dataset(file, fits + what, (512, 512), (512, 512), t, gzip=True,
                        unpacked=512 * 512 * t.get_size() if fits else 512 * MIB, **filters)
            made("gzip")
            made("i24", i24())
            made("nbit", i24(), other=(h5py.h5z.FILTER_NBIT, 0))
            made("no shuffle", shuffle=True, mask=1)
            made("late shuffle", late_shuffle=True)
            made("no late shuffle", late_shuffle=True, mask=2)
            made("no shuffle of long doubles", H.NATIVE_LDOUBLE, shuffle=True, mask=1)
            made("late shuffle of long doubles", H.NATIVE_LDOUBLE, late_shuffle=True)
            made("twice", other=(h5py.h5z.FILTER_DEFLATE, 0, (9,)), mask=1)
            made("late shuffle, sums", late_shuffle=True, sums=True, mask=4)
    through_hdf5, more, order = ("--io", "hdf5"), "hold more than a chunk", "gzip(9) gzip(9)"
    for name, options, why in (
            ("gzip", (), more), ("gzip", through_hdf5, more), ("i24", (), more), ("i24", through_hdf5, more),
            ("nbit", (), more), ("no shuffle", (), more), ("no shuffle", through_hdf5, more),
            ("late shuffle", (), more), ("late shuffle", through_hdf5, more),
            ("no late shuffle", (), more), ("no late shuffle", through_hdf5, more),
            ("late shuffle of long doubles", (), more), ("no shuffle of long doubles", (), more),
            ("late shuffle, sums", through_hdf5, more), ("twice", through_hdf5, order)):
        for ranks in (0, 2) if name == "i24" else (0,):
            used = product(name, *options, code=1, says=why, ranks=ranks)
            assert used <= base[ranks] + LIBRARIES, (name, options, used / MIB)
        product("fits " + name, *options, code=1 if why == order else 0, says=order if why == order else "")


def test_other_commands():
    """Without a limit of their own they keep that of the machine and of the process."""
    base = bases()
    with h5py.File("m.h5", "w") as file:
        dataset(file, "gzip", (2 * BIG, 2 * BIG), (2 * BIG, 2 * BIG), gzip=True)
    for command in (["compare", "m.h5[:8,:8]", "b.h5"], ["verify", "m.h5[:8,:8]", "b.h5", "b.h5"]):
        used = peak(*command, code=1, says="smaller chunks (h5repack -l /gzip", address_space=2 << 30)
        assert used <= base[0] + LIBRARIES, (command, used / MIB)


main(globals())
