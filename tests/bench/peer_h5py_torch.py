"""The product a person would write for several GPUs: h5py reads A and B, torch multiplies rows of A on each GPU with a
copy of B, h5py writes C.

Usage: peer_h5py_torch.py A.h5 B.h5 C.h5    (the matrices are /A, /B and /C, all of one floating type)
IEEE arithmetic: no tf32. Where torch sees no GPU it multiplies on the CPU. Prints one JSON object: seconds of start-up
(imports and the GPUs' contexts), read, multiply (copies to and from the GPUs included) and write, and total, from the
first read to the last byte.
"""
import time

BEGAN = time.monotonic()

import concurrent.futures
import json
import sys

import h5py
import torch


def multiply_rows(device, a, b, c, first, last):
    c[first:last] = (a[first:last].to(device) @ b.to(device)).cpu()


def multiply(devices, a, b):
    c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype)
    ends = [a.shape[0] * i // len(devices) for i in range(len(devices) + 1)]
    with concurrent.futures.ThreadPoolExecutor(len(devices)) as threads:
        for part in [threads.submit(multiply_rows, device, a, b, c, ends[i], ends[i + 1]) for i,
                     device in enumerate(devices)]:
            part.result()
    return c


def main():
    a_file, b_file, c_file = sys.argv[1:]
    torch.backends.cuda.matmul.allow_tf32 = False
    devices = [f"cuda:{i}" for i in range(torch.cuda.device_count())] or ["cpu"]
    for device in devices:
        torch.zeros(1, device=device)
    ready = time.monotonic()
    with h5py.File(a_file) as a, h5py.File(b_file) as b:
        a, b = torch.from_numpy(a["A"][:]), torch.from_numpy(b["B"][:])
    read = time.monotonic()
    c = multiply(devices, a, b)
    multiplied = time.monotonic()
    with h5py.File(c_file, "w") as file:
        file["C"] = c.numpy()
    written = time.monotonic()
    print(json.dumps({"startup": ready - BEGAN, "read": read - ready, "multiply": multiplied - read,
                      "write": written - multiplied, "total": written - ready,
                      "devices": len(devices), "device": devices[0], "torch": torch.__version__}))


main()
