"""Checks a product of small integers, its record in the file and its JSON log with numpy: exact, or exit 1 with a line.

Usage: check_product.py A.h5 B.h5 C.h5 LOG.json RANKS    (the matrices are /A, /B and /C)
"""
import json
import sys

import h5py
import numpy as np

a_file, b_file, c_file, log_file, ranks = sys.argv[1:]
with h5py.File(a_file) as a, h5py.File(b_file) as b, h5py.File(c_file) as c:
    expected = a["A"][:].astype(np.float64) @ b["B"][:].astype(np.float64)
    product = c["C"][:]
    rows = len(c["C.run/ranks"])
    kernel = c["C.run"].attrs["kernel"]
if product.shape != expected.shape or not np.array_equal(product, expected):
    sys.exit(f"{c_file}: not the product of {a_file} and {b_file}")
if rows != int(ranks):
    sys.exit(f"{c_file}: the record has {rows} ranks, not {ranks}")
if not kernel:
    sys.exit(f"{c_file}: the record names no kernel")
with open(log_file) as log:
    entries = json.load(log)["ranks"]
if len(entries) != int(ranks):
    sys.exit(f"{log_file}: {len(entries)} ranks, not {ranks}")
