"""A program that uses libtessera on a disk that is full, from each call on that could find out: the call fails and
says why, and the process ends as it wants to. HDF5's exit handler, which is the program's, crashes where a file was
left that could not be written.
Usage: test_full_disk.py TESSERA MPIRUN FULL_DISK INJECTOR"""
import errno
import os
import struct
import subprocess
import sys

import numpy as np
from lib import ENVIRONMENT, LONG, main, read, write

PROGRAM, INJECTOR = sys.argv[3:5]
FAMILIES = "open openat pread pwrite ftruncate fallocate fsync".split()  # in the order of injector.c
FULL = 8  # TESSERA_ERR_SPACE
A, B = np.arange(600.0).reshape(20, 30) % 7, np.arange(750.0).reshape(30, 25) % 5


def fired():
    """How often the injector let a call fail: the number behind those of 32 families."""
    with open("report", "rb") as file:
        return struct.unpack("33Q", file.read(33 * 8))[32]


def run(family, call, *chunk):
    environment = dict(ENVIRONMENT, LD_PRELOAD=INJECTOR, TSR_FAULT_PROGRAM=os.path.basename(PROGRAM),
                       TSR_FAULT_REPORT="report", TSR_FAULT_FAMILY=str(FAMILIES.index(family)),
                       TSR_FAULT_CALL=str(call), TSR_FAULT_STAYS="1", TSR_FAULT_ERRNO=str(errno.ENOSPC))
    for name in ("report", "c.h5"):
        if os.path.exists(name):
            os.remove(name)
    return subprocess.run([PROGRAM, "a.h5", "b.h5", "c.h5:/C", *chunk], capture_output=True, text=True, timeout=60,
                          env=environment)


def test_every_call():
    write("a.h5", A), write("b.h5", B)
    failed = 0
    for chunk, families in (((), ("pwrite", "ftruncate", "fallocate")), (("8x8",), ("pwrite",))):
        for family in families:
            for call in range(1, 200, 1 if LONG else 3):
                done = run(family, call, *chunk)
                where = f"{family}, call {call}, {chunk}: {done.returncode}: {done.stdout}{done.stderr}"
                if fired() == 0:
                    break
                assert done.returncode in (0, FULL), where  # another way to make room may be found
                if done.returncode == 0:
                    assert np.array_equal(read("c.h5"), A @ B), where
                    continue
                failed += 1
                assert "No space left on device" in done.stdout and not os.path.exists("c.h5"), where
            assert done.returncode == 0 and np.array_equal(read("c.h5"), A @ B), where
    assert failed >= (10 if LONG else 4), f"only {failed} calls made a run fail"
    left = [name for name in os.listdir() if name.startswith(".")]
    assert not left, left


main(globals())
