"""Malformed HDF5 files, each made by changing bytes of a good one: HDF5 1.10.8 crashes on them or never comes back."""
import io
import struct

import h5py
import numpy as np


def made(fill):
    """The bytes of a file that `fill` fills, in the format of HDF5 1.8."""
    data = io.BytesIO()
    with h5py.File(data, "w") as file:
        fill(file)
    return bytearray(data.getvalue())


def only(data, pattern):
    """Where the pattern is; it must be there once."""
    assert data.count(pattern) == 1, f"{pattern} is there {data.count(pattern)} times"
    return data.index(pattern)


def with_text(bytes_of_text):
    """The text of an attribute is object 2 of a global heap, which says that it has so many bytes."""
    def fill(file):
        file["A"] = np.eye(4, dtype="f4")
        file.attrs["text"] = "word"
        file["A"].attrs.create("MATLAB_class", "double", dtype=h5py.string_dtype())

    data = made(fill)
    at = data.index(b"GCOL") + 16  # its objects: number, references, reserved, bytes, and the bytes in eights
    while struct.unpack_from("<H", data, at)[0] != 2:
        at += 16 + -(-struct.unpack_from("<Q", data, at + 8)[0] // 8) * 8
    struct.pack_into("<Q", data, at + 8, bytes_of_text)
    return data


def endless_heap():
    """No bytes: reading the heap never ends."""
    return with_text(0)


def long_text():
    """More bytes than the heap has: a segmentation fault."""
    return with_text(0x42000006)


def wide_enum():
    """An enumeration of 4 bytes whose numbers have 8 MB: a segmentation fault."""
    kind = h5py.enum_dtype({"a": 1, "b": 2}, basetype="<i4")
    data = made(lambda file: file.create_dataset("A", data=np.zeros((4, 4), kind)))
    at = only(data, b"\x18\x02\0\0\x04\0\0\0\x10\x08\0\0\x04\0\0\0")
    data[at + 14] = 0x80
    return data


def negative_fill():
    """The fill value has a negative number of bytes: asking for it is a segmentation fault."""
    data = made(lambda file: file.create_dataset("A", data=np.eye(4, dtype="f4"), chunks=(2, 2), compression="gzip",
                                                 fillvalue=7))
    at = only(data, b"\x01\x04\x00\x00\x00" + struct.pack("<f", 7))
    data[at + 4] = 0xBE
    return data


def empty_compact():
    """A dataset of 4 x 4 elements becomes compact, that is part of its own description, with 0 bytes of data: reading
    it is a segmentation fault."""
    data = made(lambda file: file.create_dataset("A", data=np.eye(4, dtype="f4"), chunks=(2, 2), compression="gzip"))
    at = only(data, b"\x08\x00\x18\x00\x00\x00\x00\x00\x03\x02\x03")  # a layout: version 3, chunked, 3 dimensions
    data[at + 9:at + 12] = b"\0\0\0"
    return data

