"""The product a person would write: h5py reads A and B, OpenBLAS multiplies in this one process, h5py writes C.

Usage: baseline.py A.h5 B.h5 C.h5 THREADS    (single precision; the matrices are /A, /B and /C)
OpenBLAS is called through its own library, so that it is OpenBLAS whatever numpy is linked to. Prints one JSON object:
seconds of read, multiply and write, and the OpenBLAS configuration.
"""
import ctypes
import ctypes.util
import json
import sys
import time

import h5py
import numpy as np

ROW_MAJOR, NO_TRANSPOSE = 101, 111


def openblas(threads):
    name = ctypes.util.find_library("openblas")
    if name is None:
        sys.exit("no OpenBLAS library: install libopenblas-dev")
    library = ctypes.CDLL(name)
    library.openblas_get_config.restype = ctypes.c_char_p
    library.openblas_set_num_threads(threads)
    if library.openblas_get_num_threads() != threads:
        sys.exit(f"OpenBLAS did not take {threads} threads")
    return library


def multiply(library, a, b):
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), np.float32)
    data = lambda matrix: matrix.ctypes.data_as(ctypes.c_void_p)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    library.cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, one, data(a), k, data(b), n, zero, data(c), n)
    return c


def main():
    a_file, b_file, c_file, threads = sys.argv[1:]
    library = openblas(int(threads))
    start = time.monotonic()
    with h5py.File(a_file) as a, h5py.File(b_file) as b:
        a, b = a["A"][:], b["B"][:]
    if a.dtype != np.float32 or b.dtype != np.float32:
        sys.exit("the baseline multiplies float32")
    read = time.monotonic()
    c = multiply(library, a, b)
    multiplied = time.monotonic()
    with h5py.File(c_file, "w") as file:
        file["C"] = c
    written = time.monotonic()
    print(json.dumps({"read": read - start, "multiply": multiplied - read, "write": written - multiplied,
                      "config": library.openblas_get_config().decode()}))


main()
