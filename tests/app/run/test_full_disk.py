"""A disk that is full at every point of a run: a file system in memory of the test's own, which nobody else sees, is
made a page larger from run to run until C fits. Each run ends with one line and exit code 1, or with the right C; never
by a signal. The same with a limit on the size of files."""
import ctypes
import os
import subprocess
import sys

ALONE = "TSR_TEST_ALONE"  # set where this process has mounts of its own


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


if ALONE not in os.environ:
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    try:
        if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
            skip("no right to mount a small file system")
    except FileNotFoundError:
        skip("no unshare to mount a small file system with")
    os.environ[ALONE] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, *sys.argv])

import h5py  # noqa: E402

from lib import ENVIRONMENT, FOLDER, command_line, main, np, own_lines, random, some, write  # noqa: E402

ENVIRONMENT["TMPDIR"] = FOLDER  # the launcher's files of another user, who is not root here, may be in /tmp
PAGE = 4096
DISK = os.path.abspath("disk")
MS_REMOUNT = 32
LIBC = ctypes.CDLL(None, use_errno=True)
A, B = random.integers(-4, 5, size=(40, 30)).astype("f8"), random.integers(-4, 5, size=(30, 40)).astype("f8")


def mount(size, flags=0):
    return LIBC.mount(b"tmpfs", DISK.encode(), b"tmpfs", flags, f"size={size}".encode()) == 0


def used():
    """Pages that the disk's files take."""
    disk = os.statvfs(DISK)
    return disk.f_blocks - disk.f_bfree


def make(others):
    """The earlier C, and beside it other contents, in a file of its own."""
    for name in os.listdir(DISK):
        os.remove(f"{DISK}/{name}")
    assert mount("4m", MS_REMOUNT), "remount"
    write(f"{DISK}/c.h5", np.full((3, 3), 5.0))
    if others:
        write(f"{DISK}/c.h5", np.arange(2000.0), "other")
    with open(f"{DISK}/c.h5", "rb") as file:
        return file.read()


def attempt(command, before, others, right, environment):
    """One run; whether it made C."""
    process = subprocess.run(command, capture_output=True, text=True, env=dict(ENVIRONMENT, **environment), timeout=60)
    said = f"{command}: {process.returncode}\n{process.stdout}{process.stderr}"
    errors = own_lines(process.stderr)
    with open(f"{DISK}/c.h5", "rb") as file:
        now = file.read()
    assert os.listdir(DISK) == ["c.h5"], f"{os.listdir(DISK)} after {said}"
    assert "signal" not in process.stderr.lower(), said
    if process.returncode == 1:
        assert now == before, f"the earlier C changed: {said}"
        assert len(errors) == 1 and errors[0].startswith("tessera: error: "), said
        assert "free some space" in errors[0] or "ulimit -f" in errors[0], said
        return False
    assert process.returncode == 0 and not errors, said
    with h5py.File(f"{DISK}/c.h5") as file:
        assert right(file["C"][:]), f"wrong values: {said}"
        assert "tessera_incomplete" not in file["C"].attrs, said
        assert not others or np.array_equal(file["other"][:], np.arange(2000.0)), said
    return True


def every_page(arguments, others, right, ranks):
    before = make(others)
    start, failed = used(), 0
    for pages in range(100):
        assert mount((start + pages) * PAGE, MS_REMOUNT), f"remount {pages}"
        if attempt(command_line(arguments, ranks), before, others, right, {}):
            assert failed > 4, f"{arguments} on {ranks} ranks: only {failed} runs met a full disk"
            return
        failed += 1
    raise AssertionError(f"{arguments} on {ranks} ranks never had room")


MULTIPLY = ["multiply", "a.h5", "b.h5", "-o", f"{DISK}/c.h5:/C", "--force", "--device", "cpu", "--quiet"]
GENERATE = ["generate", "--shape", "40x40", "--type", "f64", "--distribution", "identity", "-o", f"{DISK}/c.h5:/C",
            "--force", "--quiet"]


def is_product(c):
    return np.array_equal(c, A @ B)


def is_identity(c):
    return np.array_equal(c, np.eye(40))


def test_every_page():
    os.mkdir(DISK)
    if not mount("4m"):
        skip("no right to mount a small file system")
    write("a.h5", A), write("b.h5", B)
    chunked = [*MULTIPLY, "--chunk", "16x16"]
    cases = [(MULTIPLY, True, is_product, 0), (chunked, False, is_product, 0), (GENERATE, False, is_identity, 2),
             (GENERATE, True, is_identity, 0), (MULTIPLY, False, is_product, 2), (chunked, True, is_product, 2)]
    for case in some(cases, 3):
        every_page(*case)


def test_file_size():
    """The limit holds for the output's files alone: MPI has some of its own."""
    environment = {"LD_PRELOAD": os.environ["TSR_SMALL_FILES"]}
    for arguments, right, ranks, step in ((MULTIPLY, is_product, 0, 1621), (GENERATE, is_identity, 0, 1621),
                                          ([*MULTIPLY, "--chunk", "16x16"], is_product, 2, 9300)):
        before = make(others=False)
        for limit in range(0, 200000, step):
            environment["TSR_FILE_BYTES"] = str(limit)
            if attempt(command_line(arguments, ranks), before, False, right, environment):
                assert limit > 40 * 40 * 8, f"{arguments}: C in {limit} bytes"
                break
        else:
            raise AssertionError(f"{arguments} never had room")


try:
    main(globals())
finally:
    LIBC.umount2(DISK.encode(), 2)  # MNT_DETACH
