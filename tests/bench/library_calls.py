"""Calls of tessera.multiply on arrays, timed as their caller sees them; used by gpu_library.py. Prints "call SECONDS
record SECONDS" for each, on rank 0. Usage: library_calls.py N CALLS DEVICE KERNEL CHECK numpy|new|empty

numpy: arrays of NumPy, also for C, written to before. new: the same, and each call makes C. empty: tessera.empty, which
all ranks share."""
import sys
import time

import numpy as np

import tessera

n, calls, (device, kernel, check, kind) = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
options = {"device": device, "kernel": kernel, "check": check}
comm = tessera._communicator(None)
if kind == "empty":
    arrays = [tessera.empty((n, n), "f4") for _ in range(3)]
else:
    arrays = [np.zeros((n, n), "f4") for _ in range(3)]
if comm.rank == 0:
    for x in arrays:
        x[...] = np.arange(n, dtype="f4") % 5 - 2
if kind == "empty" and comm.size > 1:
    arrays = [tessera.Distributed(x, x.shape, shared=True) for x in arrays]
a, b, c = arrays
for _ in range(calls):
    comm.allgather(None)
    start = time.perf_counter()
    record = tessera.multiply(a, b, None if kind == "new" else c, **options)
    end = time.perf_counter()
    if comm.rank == 0:
        print(f"call {end - start:.6f} record {record.seconds:.6f}", flush=True)
