"""A program that uses the library, of which each call of MPI fails on one of two ranks: the job ends, and a line on
standard error names the call, unless MPI ends the job first, as it may in calls for windows. Its own calls of MPI, the
first and the last, fail, too: there only that nothing hangs is tested.
Usage: test_failing_mpi.py TESSERA MPIRUN PROGRAM INJECTOR"""
import os
import struct
import subprocess
import sys

import numpy as np
from lib import ENVIRONMENT, LONG, MPIRUN, TESSERA, main, read, write

PROGRAM, INJECTOR = sys.argv[3:5]
FAMILY = 16  # mpi, in the order of injector.h
OWN = ("MPI_Init_thread", "MPI_Finalize")
EVERY = int(os.environ.get("TSR_FAULT_EVERY", "1" if LONG else "10"))  # call that is tried, of each rank
A, B = np.arange(600.0).reshape(20, 30) % 7, np.arange(750.0).reshape(30, 25) % 5


def run(rank, call):
    environment = dict(ENVIRONMENT, LD_PRELOAD=INJECTOR, TSR_FAULT_PROGRAM=os.path.basename(PROGRAM),
                       TSR_FAULT_REPORT="report", TSR_FAULT_FAMILY=str(FAMILY), TSR_FAULT_CALL=str(call),
                       TSR_FAULT_RANK=str(rank), TESSERA_DESCRIBE=TESSERA + "-describe")
    for name in ("report", "c.h5"):
        if os.path.exists(name):
            os.remove(name)
    command = ["timeout", "20", MPIRUN, "-n", "2", PROGRAM, "a.h5", "b.h5", "c.h5:/C"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    with open("report", "rb") as file:
        data = file.read()
    function, caller = (part.split(b"\0")[0].decode() for part in (data[264:328], data[328:584]))
    assert done.returncode != 124, f"hangs: rank {rank}, call {call}, {function} from {caller}: {done.stderr}"
    return done, struct.unpack("33Q", data[:264])[32], function


def test_calls():
    write("a.h5", A), write("b.h5", B)
    failed = 0
    for rank in (0, 1):
        for call in range(2 + 2 * rank, 500, EVERY):
            done, fired, function = run(rank, call)
            where = f"rank {rank}, call {call}, {function}: {done.returncode}: {done.stdout}{done.stderr}"
            if not fired:
                break
            if function in OWN:
                continue
            failed += 1
            assert done.returncode != 0, where
            # what a rank says to the others while they are still inside the call, MPI itself may end the job for
            by_mpi = "MPI_ERRORS_ARE_FATAL" in done.stderr or "MPI Error in NBC subrequest" in done.stderr
            ended = by_mpi and function.startswith("MPI_Win_")
            assert f"{function}(" in done.stderr or "MPI refused" in done.stderr or ended, where
            assert not os.path.exists("c.h5") or np.array_equal(read("c.h5"), A @ B), where
            for name in os.listdir():  # the library handles no signals: the next run removes what a killed one left
                if name.startswith(".c.h5"):
                    os.remove(name)
        assert not fired and np.array_equal(read("c.h5"), A @ B), where
    assert failed > 240 / EVERY, failed


main(globals())
