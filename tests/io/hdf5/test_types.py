"""Number types that are no C type: each is converted right, all of its codes or many of them, or refused by name."""
import math
import os
import random
import subprocess
import sys
import tempfile
from fractions import Fraction

import h5py
import numpy as np

TOOL = sys.argv[1]
H = h5py.h5t
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 12
random.seed(SEED)


def float_type(size, fields, bias, order="<", norm=H.NORM_IMPLIED):
    """fields: sign, exponent, its bits, mantissa, its bits, as H5Tset_fields takes them."""
    t = H.IEEE_F64LE.copy()
    if size > 8:
        t.set_size(size)
        t.set_precision(8 * size)
    t.set_order({"<": H.ORDER_LE, ">": H.ORDER_BE, "vax": H.ORDER_VAX}[order])
    t.set_fields(*fields)
    t.set_ebias(bias)
    t.set_norm(norm)
    t.set_size(size)
    return t


def enum_type(base, **members):
    t = h5py.h5t.enum_create(base)
    for name, value in members.items():
        t.enum_insert(name.encode(), value)
    return t


def decode_float(code, fields, bias):
    """As IEEE 754 lays out formats of any width."""
    sign, epos, ebits, mpos, mbits = fields
    e, m = code >> epos & (1 << ebits) - 1, code >> mpos & (1 << mbits) - 1
    s = -1 if code >> sign & 1 else 1
    if e == (1 << ebits) - 1:
        return math.nan if m else s * math.inf
    value = (Fraction(m, 1 << mbits) + (1 if e else 0)) * Fraction(2) ** (max(e, 1) - bias)
    return math.copysign(float(value), s)


def put(file, name, t, codes, size, order="<"):
    """Stores the codes as they stand, one row."""
    raw = b"".join(c.to_bytes(size, "little" if order == "<" else "big") for c in codes)
    space = h5py.h5s.create_simple((1, len(codes)))
    d = h5py.h5d.create(file.id, name.encode(), t, space)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.frombuffer(raw, "u1").copy(), t)


def tool(*args):
    return subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=60)


def get(name, count):
    done = tool("read", name, "auto", 0, 0, 1, count, "out.bin")
    assert done.returncode == 0, (name, done.stderr)
    mode, dtype = done.stdout.split()
    assert mode == "hdf5", (name, mode)
    kind = {"f16": "f2", "f32": "f4", "f64": "f8"}.get(dtype, dtype[0] + str(int(dtype[1:]) // 8))
    return dtype, np.fromfile("out.bin", kind)


def check_floats(name, fields, bias, codes, want_type):
    dtype, got = get("x.h5:/" + name, len(codes))
    assert want_type in (None, dtype), (name, dtype, want_type)
    want = np.array([decode_float(c, fields, bias) for c in codes])
    assert np.array_equal(want.astype(got.dtype).astype("f8"), want, equal_nan=True), (name, dtype, "is too narrow")
    wrong = [(hex(c), w, float(g)) for c, w, g in zip(codes, want, got)
             if not (w == g and math.copysign(1, w) == math.copysign(1, g)) and not (math.isnan(w) and math.isnan(g))]
    assert not wrong, (name, fields, bias, len(wrong), wrong[:4])


def test_small_floats():
    """All codes of types of 9 to 16 bits, in either order."""
    types = {
        "half elsewhere": (2, (0, 11, 5, 1, 10), 15, "f32"),
        "bias": (2, (15, 10, 5, 0, 10), 20, "f32"),
        "far": (2, (15, 10, 5, 0, 10), 300, "f64"),
        "wide": (2, (15, 5, 10, 0, 5), 511, "f64"),
        "e11m4": (2, (15, 4, 11, 0, 4), 1023, "f64"),
        "exponent first": (2, (15, 0, 5, 5, 10), 15, "f32"),
        "gaps": (2, (15, 10, 4, 1, 8), 7, "f32"),
        "12": (2, (11, 6, 5, 0, 6), 15, "f32"),
        "long mantissa": (2, (15, 13, 2, 0, 13), 1, "f32"),
    }
    codes = list(range(1 << 16))
    with h5py.File("x.h5", "w") as file:
        for name, (size, fields, bias, _) in types.items():
            for order in "<>":
                put(file, name + order, float_type(size, fields, bias, order), codes, size, order)
    for name, (_, fields, bias, dtype) in types.items():
        for order in "<>":
            check_floats(name + order, fields, bias, codes, dtype)


def random_fields(size):
    total = 8 * size
    ebits = random.randint(2, min(11, total - 5))
    mbits = random.randint(max(2, 8 - ebits), max(max(2, 8 - ebits), min(52, total - 1 - ebits)))
    if 1 + ebits + mbits > total:
        return None
    slack, at, where = total - 1 - ebits - mbits, 0, {}
    for part, bits in random.sample([("s", 1), ("e", ebits), ("m", mbits)], 3):
        gap = random.randint(0, slack) if random.random() < 0.5 else 0
        slack -= gap
        where[part] = at + gap
        at += gap + bits
    bias = random.choice([(1 << ebits - 1) - 1, random.randint(1, 1000)])
    if (1 << ebits) - 2 - bias > 1023 or 1 - bias - mbits < -1074:
        return None
    return (where["s"], where["e"], ebits, where["m"], mbits), bias


def test_any_floats():
    """Fields anywhere, bits between them set or not: what f64 can hold is read right."""
    types = []
    with h5py.File("x.h5", "w") as file:
        while len(types) < 60:
            size = random.choice([2, 3, 4, 5, 6, 7, 8])
            chosen = random_fields(size)
            if not chosen or (size in (2, 4, 8) and chosen in IEEE):
                continue
            fields, bias = chosen
            order, codes = random.choice("<>"), [random.getrandbits(8 * size) for _ in range(500)]
            exponent, mantissa = (1 << fields[2]) - 1 << fields[1], (1 << fields[4]) - 1 << fields[3]
            for i in range(0, 500, 5):
                codes[i] = codes[i] & ~exponent if i % 10 else codes[i] | exponent
                codes[i] &= ~(mantissa if i % 15 == 0 else 0)
            name = f"t{len(types)}"
            put(file, name, float_type(size, fields, bias, order), codes, size, order)
            types.append((name, fields, bias, codes))
    for name, fields, bias, codes in types:
        check_floats(name, fields, bias, codes, None)


IEEE = [((15, 10, 5, 0, 10), 15), ((31, 23, 8, 0, 23), 127), ((63, 52, 11, 0, 52), 1023)]


def test_any_integers():
    """1 to 8 bytes, any precision and offset, the bits around set or not."""
    types = []
    with h5py.File("x.h5", "w") as file:
        while len(types) < 60:
            size = random.choice([1, 2, 3, 3, 4, 5, 6, 7, 8])
            bits = random.choice([8 * size, random.randint(1, 8 * size)])
            offset = random.randint(0, 8 * size - bits)
            if size in (1, 2, 4, 8) and bits == 8 * size:
                continue
            order, signed = random.choice("<>"), random.random() < 0.5
            if (signed and bits == 1) or (size == 8 and order == ">" and offset == 0):
                continue  # the latter are refused
            t = H.STD_I64LE.copy() if signed else H.STD_U64LE.copy()
            t.set_order(H.ORDER_LE if order == "<" else H.ORDER_BE)
            t.set_precision(bits)
            t.set_offset(offset)
            t.set_size(size)
            codes = [random.getrandbits(8 * size) for _ in range(300)]
            name = f"t{len(types)}"
            put(file, name, t, codes, size, order)
            values = [c >> offset & (1 << bits) - 1 for c in codes]
            if signed:
                values = [v - (1 << bits) if v >> bits - 1 else v for v in values]
            types.append((name, size, bits, offset, signed, values))
    for name, size, bits, offset, signed, values in types:
        dtype, got = get("x.h5:/" + name, len(values))
        assert dtype[0] == ("i" if signed else "u") and got.itemsize >= size, (name, dtype)
        wrong = [(w, int(g)) for w, g in zip(values, got) if w != int(g)]
        assert not wrong, (name, size, bits, offset, signed, len(wrong), wrong[:4])


def test_x87():
    """80 bits, in 10, 12 and 16 bytes: rounded to f64; infinite beyond it."""
    def code(value):
        if math.isnan(value) or math.isinf(value):
            return (0x7FFF | (0x8000 if value < 0 else 0)) << 64 | (3 << 62 if math.isnan(value) else 1 << 63)
        mantissa, exponent = math.frexp(abs(value))
        bits = int(Fraction(mantissa) * (1 << 64))
        return ((exponent + 16382 if bits else 0) | (0x8000 if math.copysign(1, value) < 0 else 0)) << 64 | bits

    huge, third = 1 << 63 | 16383 + 5000 << 64, 0xAAAAAAAAAAAAAAAB | 16381 << 64
    values = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan, 1.7e308, 2.0**-1022, math.pi]
    codes = [code(v) for v in values] + [huge, huge | 1 << 79, third]
    values += [math.inf, -math.inf, 1 / 3]
    with h5py.File("x.h5", "w") as file:
        for size in (10, 12, 16):
            t = float_type(size, (79, 64, 15, 0, 64), 16383, norm=H.NORM_NONE)
            put(file, f"x{size}", t, codes, size)
    for size in (10, 12, 16):
        dtype, got = get(f"x.h5:/x{size}", len(codes))
        assert dtype == "f64" and np.array_equal(got, np.array(values), equal_nan=True), (size, got, values)
        assert "type_name=80-bit floating point of x87 (read as f64)\n" in tool("describe", f"x.h5:/x{size}").stdout
    if np.dtype("longdouble").itemsize == 16 and np.finfo("longdouble").nmant == 63:
        with h5py.File("x.h5", "w") as file:
            file["l"] = np.array([[1.5, -2.25, 1e300]], "longdouble")
        assert np.array_equal(get("x.h5:/l", 3)[1], [1.5, -2.25, 1e300])


def test_refused():
    """By name, and with what to do."""
    refused = {
        "E4M3": (float_type(1, (7, 3, 4, 0, 3), 7), "8-bit floating point (E4M3); convert it to f16 or f32"),
        "E5M2": (float_type(1, (7, 2, 5, 0, 2), 15), "8-bit floating point (E5M2)"),
        "E5M2 of 2 bytes": (float_type(2, (7, 2, 5, 0, 2), 15), "8-bit floating point (E5M2)"),
        "E3M4": (float_type(1, (7, 4, 3, 0, 4), 3), "8-bit floating point (E3M4)"),
        "E2M1": (float_type(1, (3, 1, 2, 0, 1), 1), "4-bit floating point (E2M1)"),
        "binary128": (float_type(16, (127, 112, 15, 0, 112), 16383), "binary128); convert it to f64"),
        "VAX": (float_type(4, (31, 23, 8, 0, 23), 129, "vax"), "VAX floating point"),
        "no implied bit": (float_type(4, (31, 23, 8, 0, 23), 127, norm=H.NORM_NONE), "mantissa of 23 bits"),
        "set bit": (float_type(4, (31, 23, 8, 0, 23), 127, norm=H.NORM_MSBSET), "mantissa of 23 bits"),
        "e15": (float_type(8, (63, 48, 15, 0, 48), 16383), "exponent of 15 and a mantissa of 48 bits; convert"),
        "m60": (float_type(9, (71, 60, 11, 0, 60), 1023), "exponent of 11 and a mantissa of 60 bits; convert"),
        "far": (float_type(8, (63, 52, 11, 0, 52), 1200), "exponent of 11 and a mantissa of 52 bits; convert"),
        "x87 big": (float_type(16, (79, 64, 15, 0, 64), 16383, ">", H.NORM_NONE), "exponent of 15 and a mantissa of 6"),
        "i128": (H.STD_I64LE.copy(), "integers of 16 bytes; convert"),
        "swapped": (H.STD_I64BE.copy(), "big-endian integers of 40 bits in 8 bytes; convert"),
        "bits": (H.STD_B32LE.copy(), "bit fields; convert"),
        "time": (H.UNIX_D32LE.copy(), "times; convert"),
        "enum": (H.py_create(h5py.enum_dtype({"A": 1}), logical=True), "an enum of A; convert"),
        "flags": (enum_type(H.STD_I16LE, FALSE=0, TRUE=1), "an enum of FALSE, TRUE; convert it to integers, or"),
        "swapped flags": (enum_type(H.STD_I8LE, FALSE=1, TRUE=0), "an enum of FALSE, TRUE; convert"),
        "colours": (enum_type(H.STD_I8LE, RED=0, BLUE=1, GREEN=2, GREY=3), "an enum of RED, BLUE, GREEN, ...; con"),
        "half with another bias": (float_type(2, (15, 10, 5, 0, 10), 1 << 20), "floating point with an exponent of 5"),
    }
    refused["i128"][0].set_size(16)
    refused["swapped"][0].set_precision(40)
    with h5py.File("x.h5", "w") as file:
        for name, (t, _) in refused.items():
            h5py.h5d.create(file.id, name.encode(), t, h5py.h5s.create_simple((2, 2)))
    for name, (_, says) in refused.items():
        done = tool("describe", "x.h5:/" + name)
        assert done.returncode == 1 and says in done.stderr and "it holds" in done.stderr, (name, done)
    listed = dict(line.split("\t") for line in tool("list", "x.h5").stdout.splitlines())
    assert len(listed) == len(refused) and all(listed.values()), listed


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    print("seed", SEED)
    for test in [value for name, value in list(globals().items()) if name.startswith("test_")]:
        test()
    os.chdir("/")
