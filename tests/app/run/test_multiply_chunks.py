"""multiply --chunk, --compress, --shuffle: what h5py finds in the file is what was asked for, and C."""
import json
import os
import re
import signal
import subprocess
import time

import h5py

from lib import (ENVIRONMENT, FOLDER, SOON_OVER, check_chunked, command_line, fails, integers, leftovers, main, np,
                 random, read, run, write)


def test_filters():
    a, b = integers(123, 40), integers(40, 77)
    write("a.h5", a), write("b.h5", b)
    plain = check_chunked(a, b, "--chunk", "20x30", chunks=(20, 30))
    assert plain == 7 * 3 * 20 * 30 * 4, plain
    sizes = {}
    for level, ranks in ((0, 0), (1, 1), (4, 0), (9, 0)):
        sizes[level] = check_chunked(a, b, "--chunk", "20x30", "--compress", f"gzip:{level}", ranks=ranks,
                                     chunks=(20, 30), gzip=level)
    assert sizes[0] == plain and sizes[9] <= sizes[1] < plain, sizes
    shuffled = check_chunked(a, b, "--chunk", "20x30", "--compress", "gzip", "--shuffle", chunks=(20, 30), gzip=4,
                             shuffle=True)
    assert shuffled < sizes[4], (shuffled, sizes)


def test_chunk_shapes():
    a, b = integers(97, 31), integers(31, 53)
    write("a.h5", a), write("b.h5", b)
    for asked, chunks in (("1x1", (1, 1)), ("1x53", (1, 53)), ("97x1", (97, 1)), ("1000x1000", (97, 53)),
                          ("32x4000", (32, 53)), ("auto", (97, 53)), ("13x7", (13, 7))):
        check_chunked(a, b, "--chunk", asked, "--compress", "gzip:1", "--shuffle", "--verify", chunks=chunks, gzip=1,
                      shuffle=True)
    check_chunked(a, b, "--compress", "gzip", chunks=(97, 53), gzip=4)
    a, b = integers(1100, 3), integers(3, 900)
    write("a.h5", a), write("b.h5", b)
    check_chunked(a, b, "--compress", "gzip", "--io-threads", 1, chunks=(560, 464), gzip=4)


def test_types():
    for name, dtype in (("f16", "f2"), ("f32", "f4"), ("f64", "f8")):
        a, b = integers(45, 21, "f8"), integers(21, 38, "f8")
        write("a.h5", a), write("b.h5", b)
        for filters, gzip, shuffle in ([], None, False), (["--compress", "gzip:2", "--shuffle"], 2, True):
            check_chunked(a, b, "--type", name, "--chunk", "16x16", *filters, "--verify", chunks=(16, 16), gzip=gzip,
                          shuffle=shuffle)
            assert read("c.h5").dtype == np.dtype(dtype)


def test_noise():
    """What deflate does not make smaller is stored as it was, as HDF5 would: never larger than plain chunks."""
    a, b = np.eye(64, dtype="f4"), random.integers(0, 2**32, size=(64, 64), dtype="u8").astype("u4").view("f4")
    b = np.where(np.isfinite(b), b, np.float32(1))
    write("a.h5", a), write("b.h5", b)
    run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "16x64", "--compress",
        "gzip:9")
    with h5py.File("c.h5") as file:
        infos = [file["C"].id.get_chunk_info(i) for i in range(4)]
        assert all(info.filter_mask == 1 and info.size == 16 * 64 * 4 for info in infos), infos
        assert np.array_equal(file["C"][:], b)


def test_empty():
    for m, k, n in ((0, 4, 5), (4, 5, 0), (0, 0, 0), (4, 0, 5)):
        write("a.h5", np.ones((m, k), "f4")), write("b.h5", np.ones((k, n), "f4"))
        for ranks in (0, 1):
            run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "4x5", "--compress",
                "gzip", "--verify", ranks=ranks)
            c = read("c.h5")
            assert c.shape == (m, n) and np.all(c == 0), c


def test_beside_others():
    """Other datasets of the target stay, a plain C is replaced by a chunked one and the other way round."""
    a, b = integers(30, 20), integers(20, 10)
    write("a.h5", a), write("b.h5", b)
    if os.path.exists("c.h5"):
        os.remove("c.h5")
    write("c.h5", np.arange(12.0), "other")
    check_chunked(a, b, chunks=(7, 10), gzip=4, *["--chunk", "7x99", "--compress", "gzip"])
    assert np.array_equal(read("c.h5", "other"), np.arange(12.0))
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--chunk", "7x9", code=1, says="--force")
    run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force")
    with h5py.File("c.h5") as file:
        assert file["C"].chunks is None and np.array_equal(file["other"][:], np.arange(12.0))


def test_reads_itself():
    """A compressed C is an input like any other."""
    a, b = integers(60, 60), integers(60, 60)
    write("a.h5", a), write("b.h5", b)
    check_chunked(a, b, "--chunk", "16x24", "--compress", "gzip", "--shuffle", chunks=(16, 24), gzip=4, shuffle=True)
    run("multiply", "c.h5", "b.h5", "-o", "d.h5", "--force", "--device", "cpu", "--verify", ranks=2)
    assert np.array_equal(read("d.h5"), (a.astype("f8") @ b) @ b)
    assert "gzip(4)" in run("info", "c.h5").out


def test_ranks():
    a, b = integers(96, 41), integers(41, 60)
    write("a.h5", a), write("b.h5", b)
    for ranks, grid, chunk in ((2, "2x1", (16, 7)), (2, "1x2", (9, 15)), (3, "3x1", (32, 60)), (3, "1x3", (50, 10)),
                               (3, "2x1", (12, 60))):
        check_chunked(a, b, "--grid", grid, "--chunk", f"{chunk[0]}x{chunk[1]}", "--compress", "gzip:3", "--verify",
                      ranks=ranks, chunks=chunk, gzip=3)
    for mode in ("direct", "hdf5", "mpio"):
        check_chunked(a, b, "--grid", "2x1", "--chunk", "16x7", "--compress", "gzip:3", "--verify", "--io", mode,
                      ranks=2, chunks=(16, 7), gzip=3)
    log = "run.json"
    check_chunked(a, b, "--grid", "2x1", "--chunk", "16x60", "--compress", "gzip", "--log", log, "--trace",
                  "trace.json", ranks=2, chunks=(16, 60), gzip=4)
    seconds = [rank["write_seconds"] for rank in json.load(open(log))["ranks"]]
    assert all(s > 0 for s in seconds), seconds
    synced = [event["pid"] for event in json.load(open("trace.json"))["traceEvents"] if event.get("cat") == "file"]
    assert sorted(synced) == [0, 1], synced
    os.remove("trace.json")


def test_column_order():
    """As one sees it who counts column by column: 8 rows and 30 columns of a chunk are 30 rows and 8 columns of the
    file's."""
    a, b = integers(24, 22), integers(22, 90)
    write("a.h5", a.T), write("b.h5", b.T)
    check_chunked(a, b, "--order", "col", "--chunk", "8x30", "--compress", "gzip", "--verify", chunks=(30, 8), gzip=4,
                  transposed=True)
    check_chunked(a, b, "--order", "col", "--chunk", "8x30", "--grid", "3x1", ranks=3, chunks=(30, 8), transposed=True)


def test_dry_run():
    a, b = integers(50, 20), integers(20, 30)
    write("a.h5", a), write("b.h5", b)
    out = run("multiply", "a.h5", "b.h5", "-o", "dry.h5", "--dry-run", "--chunk", "16x16", "--compress", "gzip:5",
              "--shuffle", ranks=2).out
    assert "8 of 16x16, shuffle, gzip(5)" in out, out
    assert "chunks of C" not in run("multiply", "a.h5", "b.h5", "-o", "dry.h5", "--dry-run").out
    assert not os.path.exists("dry.h5")


def encoding(*options):
    """What a dry run says of the memory that encoding takes."""
    dry = ["multiply", "a.h5", "b.h5", "-o", "dry.h5", "--dry-run", "--chunk", "16x16"]
    return re.search("encoding takes (.*) of host memory", run(*dry, *options).out).group(1)


def test_encoders_of_settings():
    """Options alone say how many chunks are encoded at once: cores differ between nodes, and all ranks plan alike."""
    write("a.h5", integers(50, 20)), write("b.h5", integers(20, 30))
    three, eight, most = encoding("--io-threads", "3"), encoding("--io-threads", "8"), encoding()
    assert three != eight != most
    for options in (["--threads", "3"], ["--threads", "3", "--io-threads", "7"],
                    ["--threads", "7", "--io-threads", "3"]):
        assert encoding(*options) == three, options
    assert encoding("--threads", "8") == eight and encoding("--threads", "64") == most


def test_many_chunks():
    """Putting them in order takes memory: more than the limit is refused before anything is multiplied."""
    write("a.h5", np.ones((3000, 1), "f4")), write("b.h5", np.ones((1, 3000), "f4"))
    fails("multiply", "a.h5", "b.h5", "-o", "none.h5", "--chunk", "1x1", "--host-memory", "100M", "--device", "cpu",
          ranks=2, code=1, says=["9000000 chunks of C need", "larger chunks"])


def test_usage():
    wrong = [(["--chunk", "5"], "--chunk"), (["--chunk", "0x5"], "at least one row"), (["--chunk", "5x-1"], "--chunk"),
             (["--compress", "zip"], "gzip[:0-9]"), (["--compress", "gzip:10"], "10"),
             (["--compress", "gzip:"], "--compress"), (["--compress", "gzip:x"], "--compress"),
             (["--shuffle"], "--compress"), (["--shuffle", "--chunk", "5x5"], "--compress")]
    for options, says in wrong:
        fails("multiply", "a.h5", "b.h5", "-o", "none.h5", *options, code=2, says=says)


def test_no_space():
    """How large compressed chunks become shows when they are written: the run fails, what was there stays. Plain chunks
    are refused at once."""
    write("a.h5", np.ones((6000, 1), "f4")), write("b.h5", np.ones((1, 1000), "f4"))
    for filters, says in ([], "the limit is"), (["--compress", "gzip:0"], "ulimit -f unlimited"):
        write("c.h5", np.full((3, 3), 5.0))
        arguments = " ".join(command_line(["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu",
                                           "--chunk", "250x1000", "--io-threads", "1", *filters]))
        process = subprocess.run(["bash", "-c", f"ulimit -f 20000; exec {arguments}"], capture_output=True, text=True,
                                 env=ENVIRONMENT, timeout=60)
        assert process.returncode == 1 and says in process.stderr, process
        assert np.all(read("c.h5") == 5) and not leftovers(), os.listdir(".")


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(child) for child in file.read().split()]


def encoded_bytes(rank):
    """Of chunks in the file without a name of a rank's process; 0 when it has none yet, or has ended."""
    held = 0
    try:
        for fd in os.listdir(f"/proc/{rank}/fd"):
            link = f"/proc/{rank}/fd/{fd}"
            if os.readlink(link).startswith(FOLDER) and os.readlink(link).endswith("(deleted)"):
                held += os.stat(link).st_size
    except FileNotFoundError:
        pass
    return held


def start_long_run():
    """Compresses a large C for long; returns once both ranks hold encoded chunks."""
    command = command_line(["multiply", "big.h5", "thin.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk",
                            "1000x1000", "--compress", "gzip:9", "--io-threads", 1, "--grid", "2x1"], ranks=2)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                               start_new_session=True)
    for _ in range(600):
        if process.poll() is not None:
            raise AssertionError(f"the run ended early: {process.communicate()}")
        if sum(encoded_bytes(rank) > 0 for rank in children(process)) == 2:
            return process
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    raise AssertionError(f"no encoded chunks: {os.listdir('.')}, {process.communicate()}")


def test_stopped():
    """Encoded chunks of a run that is ended or killed are gone with it."""
    for name in os.listdir("."):
        os.remove(name)
    write("big.h5", random.normal(size=(12000, 1)).astype("f4"))
    write("thin.h5", random.normal(size=(1, 6000)).astype("f4"))
    write("c.h5", np.full((3, 3), 5.0))
    process = start_long_run()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode != 0 and np.all(read("c.h5") == 5) and not leftovers(), os.listdir(".")
    process = start_long_run()
    for one in children(process) + [process.pid]:
        os.kill(one, signal.SIGKILL)
    process.communicate(timeout=60)
    left = leftovers()
    # the output's temporary file, where no rank came to tidy up
    assert np.all(read("c.h5") == 5) and len(left) <= 1, left
    run("multiply", "big.h5[0:30,:]", "thin.h5[:,0:30]", "-o", "c.h5", "--force", "--compress", "gzip")
    assert not leftovers(), leftovers()


def test_flipped_bits():
    """A disk that gives back something else than it got: an error, on whichever rank, and the earlier C."""
    for name in os.listdir("."):
        os.remove(name)
    write("a.h5", integers(64, 16)), write("b.h5", integers(16, 48))
    write("c.h5", np.full((3, 3), 5.0))
    command = ("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--chunk", "8x48",
               "--compress", "gzip:1")
    shim = os.environ["TSR_FLIPPED_BIT"]
    for ranks, rank in ((0, 0), (2, 0), (2, 1)):
        for bit in (0, 70, 100, 130, 190, 8 * 24, 8 * 24 + 777, 8 * 500 + 3)[: 8 if ranks == 0 else 4]:
            fails(*command, *(["--grid", "2x1"] if ranks else []), code=1, says="encoded chunk of '/C' came back",
                  ranks=ranks,
                  environment=dict(SOON_OVER, LD_PRELOAD=shim, TSR_FLIP_BIT=str(bit), TSR_FLIP_RANK=str(rank)))
            assert np.all(read("c.h5") == 5) and not leftovers(), (bit, os.listdir("."))
    run(*command, environment={"LD_PRELOAD": shim})
    assert np.array_equal(read("c.h5"), read("a.h5") @ read("b.h5"))


main(globals())
