"""Writes tests/data/blosc2/blosc2.h5: chunks of Blosc 2 as hdf5plugin writes them, most in several blocks.

Usage: make_blosc2.py, with a Python that has h5py and hdf5plugin.
"""
import pathlib

import h5py
import hdf5plugin
import numpy as np

FILE = pathlib.Path(__file__).with_name("blosc2.h5")
WAYS = {"blosclz": ("blosclz", 5, 1), "lz4": ("lz4", 5, 1), "lz4hc": ("lz4hc", 9, 0), "zlib": ("zlib", 5, 2),
        "zstd": ("zstd", 3, 1), "delta": ("zstd", 5, 3), "none": ("lz4", 0, 1)}


def main():
    rows, cols = np.arange(700), np.arange(610)
    data = (rows[:, None] // 9 * 3 + cols[None, :] // 7).astype("f8")
    with h5py.File(FILE, "w") as file:
        file.create_dataset("expected", data=data, chunks=(350, 610), compression="gzip", shuffle=True)
        for name, (codec, level, filters) in WAYS.items():
            how = hdf5plugin.Blosc2(cname=codec, clevel=level, filters=filters)
            file.create_dataset(name, data=data if level else data[:20, :10], chunks=(300, 500) if level else (16, 10),
                                **how)
        file.create_dataset("f4", data=data.astype("f4"), chunks=(512, 333),
                            **hdf5plugin.Blosc2(cname="zstd", filters=1))
        file.create_dataset("cube", data=np.stack([data, data]), chunks=(1, 513, 470),
                            **hdf5plugin.Blosc2(cname="lz4"))


main()
