"""Names of others: control characters never reach the terminal, and a dataset whose path or size is impossible keeps
no other from being listed, chosen or multiplied."""
import json
import re
import subprocess

import h5py

from lib import command_line, ENVIRONMENT, fails, integers, main, np, read, run, write

ESCAPES = "\x1b]0;owned\x07\x1b[31m\x7f\x9bred\u202e"  # a title, a colour, DEL, C1, the other direction of writing
SHOWN = r"\x1b]0;owned\x07\x1b[31m\x7f\xc2\x9bred\xe2\x80\xae"
CONTROL = re.compile(b"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]")


def output_of(*args, code=0, ranks=0):
    """Everything that the program writes, as bytes: valid UTF-8 without control characters."""
    process = subprocess.run(command_line(args, ranks), capture_output=True, timeout=60, env=ENVIRONMENT,
                             start_new_session=True)
    said = process.stdout + process.stderr
    assert process.returncode == code, (process.returncode, said)
    assert not CONTROL.search(said), said
    return said.decode()


def test_datasets():
    with h5py.File("names.h5", "w") as file:
        file["größe 矩阵"] = integers(4, 4)
        file[ESCAPES] = integers(3, 3)
        file[b"not \xff\xc3( utf-8"] = integers(2, 2)
        file.create_dataset("table" + ESCAPES, data=np.zeros((2, 2), [("x" + ESCAPES, "f4")]))
        file["list"] = np.zeros(3)
        file["list"].attrs["MATLAB_class"] = np.bytes_("a\x1b[2J")
        file["class"] = integers(3, 3)
        file["class"].attrs["MATLAB_class"] = np.bytes_("a\x1b[2J")
        file["link" + ESCAPES] = h5py.ExternalLink("other" + ESCAPES, "/x")
    said = output_of("info", "names.h5")
    assert "größe 矩阵" in said, said  # letters stay
    assert "/" + SHOWN + "  3 x 3" in said, said
    assert r"/not \xff\xc3( utf-8  2 x 2" in said, said
    assert "compound {x" + SHOWN + "}" in said and "/link" + SHOWN in said and r"MATLAB_class a\x1b[2J" in said, said
    assert SHOWN in output_of("multiply", "names.h5", "names.h5", "-o", "c.h5", code=2)
    assert SHOWN in output_of("multiply", "names.h5:/class", "names.h5:/none" + ESCAPES, "-o", "c.h5", code=1)
    for name in ("table", "link"):
        assert SHOWN in output_of("info", "names.h5:/" + name + ESCAPES, code=1)
        assert SHOWN in output_of("multiply", "names.h5:/" + name + ESCAPES, "names.h5:/class", "-o", "c.h5", code=1,
                                  ranks=2)


def test_runs():
    """A run of such names: its summary, its record and its log; and a record that another wrote."""
    name = "a" + ESCAPES + ".h5"
    write(name, integers(3, 3), "A" + ESCAPES)
    write("b.h5", integers(3, 3))
    out = "c" + ESCAPES + ".h5:/C" + ESCAPES
    for ranks in (0, 2):
        said = output_of("multiply", name, "b.h5", "-o", out, "--log", "log" + ESCAPES, "--force", "--verify",
                         "--ranks", ranks=ranks)
        assert "c" + SHOWN in said, said
    for arguments in (["c" + ESCAPES + ".h5"], [out], ["log" + ESCAPES, "--ranks"]):
        assert SHOWN in output_of("info", *arguments)
    with open("log" + ESCAPES, "rb") as file:
        text = file.read()
    assert not CONTROL.search(text.replace(b"\xe2\x80\xae", b"")), text
    assert ESCAPES in json.loads(text)["c"], text  # whole
    run("multiply", name, "b.h5", "-o", "plain.h5", "--quiet")
    with h5py.File("plain.h5", "a") as file:
        record = file["C.run"]
        for field in list(record.attrs):
            if isinstance(record.attrs[field], str):
                record.attrs[field] = record.attrs[field] + ESCAPES + "\n"
    assert SHOWN in output_of("info", "plain.h5", "--ranks")
    with open("members.json", "w") as file:
        json.dump({"a" + ESCAPES: "b" + ESCAPES, "c" + ESCAPES: [1]}, file)
    assert output_of("info", "members.json").count(SHOWN) == 3
    assert SHOWN in output_of("generate", "-o", "g" + ESCAPES + ".h5", "--shape", "3x3")
    assert SHOWN in output_of("generate", "-o", "g" + ESCAPES + ".h5:/D", "--shape", "3x3")
    assert SHOWN in output_of("compare", name, "nothing" + ESCAPES, code=1)
    assert SHOWN in output_of("plan", "--shape", "8x8x8", "--ranks", "2", "--machine", "no" + ESCAPES, code=1)
    assert SHOWN in output_of("verify", "--" + ESCAPES, code=2)
    assert SHOWN in output_of("no command" + ESCAPES, code=2)


def test_impossible_sizes():
    """Of any layout; the one possible matrix of the file is found."""
    a = integers(5, 7)
    shapes = {"a": (2**62, 2**61), "b": (2**63 - 1, 2), "c": (2**63, 1), "d": (2**64 - 2, 2**64 - 2),
              "e": (2**40, 2**40)}
    with h5py.File("sizes.h5", "w") as file:
        for name, shape in shapes.items():
            file.create_dataset(name, shape=(1, 1), chunks=(16, 16), maxshape=(None, None), dtype="f8")
            file[name].id.set_extent(shape)
        space = h5py.h5s.create_simple((2**62, 2**61))
        h5py.h5d.create(file.id, b"contiguous", h5py.h5t.IEEE_F64LE, space)
        file["m"] = a
        file["z"] = np.zeros((0, 2**40))  # nothing to multiply, but possible
        file.create_dataset("y", shape=(0, 0), maxshape=(None, None), chunks=(4, 4), dtype="f4")
    listed = run("info", "sizes.h5")
    for name, (rows, cols) in shapes.items():
        line = [line for line in listed.out.splitlines() if line.startswith(f"/{name}  cannot be multiplied: ")]
        assert len(line) == 1, listed
        shape = f"its shape {rows}x{cols} is impossible"
        assert (shape if name in "abe" else "cannot be opened") in line[0], listed  # HDF5 itself does not open two
        says = [f"sizes.h5:/{name}", shape] if name in "abe" else f"'/{name}'"
        fails("info", f"sizes.h5:/{name}", code=1, says=says)
        fails("multiply", f"sizes.h5:/{name}", "b.h5", "-o", "c.h5", code=1, says=says)
    assert "/m  5 x 7" in listed.out and "/z  0 x" in listed.out and "/y  0 x 0" in listed.out, listed
    assert "3 matrices, 6 other datasets" in listed.out, listed
    with h5py.File("sizes.h5", "a") as file:
        del file["y"], file["z"]
    b = write("b.h5", integers(7, 3))
    for ranks in (0, 2):
        run("multiply", "sizes.h5", b, "-o", "c.h5", "--force", "--quiet", ranks=ranks)
        assert np.array_equal(read("c.h5"), a @ read("b.h5"))


def test_long_paths():
    """Up to 511 characters are read; longer ones are listed with the reason."""
    with h5py.File("long.h5", "w") as file:
        file["a" * 510] = integers(3, 3)
        file["b" * 511] = integers(3, 3)
        file["é" * 300] = integers(3, 3)
        file["/".join(["g" * 100] * 8)] = integers(3, 3)
        file["c" * 600] = h5py.ExternalLink("other.h5", "/x")
        file.create_group("d" * 700)  # no dataset
    listed = run("info", "long.h5")
    long = [line for line in listed.out.splitlines() if "its path is longer than 511 characters" in line]
    assert len(long) == 3 and all("...  cannot be multiplied: " in line for line in long), listed
    assert "/" + "a" * 510 + "  3 x 3" in listed.out, listed
    assert "1 matrix, 4 other datasets" in listed.out, listed
    assert not CONTROL.search(listed.out.encode()), listed
    run("multiply", "long.h5", "long.h5", "-o", "c.h5", "--force", "--quiet")  # the one that is readable
    fails("info", "long.h5:/" + "b" * 511, code=2, says="longer than 511 characters")
    fails("multiply", "long.h5:/" + "b" * 511, "long.h5", "-o", "d.h5", code=2, says="longer than 511 characters")
    fails("info", "x" * 1100 + ".h5", code=2, says="1023")


def test_many_and_deep():
    """Groups that hold themselves, a thousand groups one in another, and 20000 datasets: each is answered."""
    with h5py.File("circle.h5", "w") as file:
        file["g/h/A"] = integers(3, 3)
        file["g/h/up"] = file["g"]
        file["g/self"] = file["g"]
        file["root"] = file["/"]
    listed = run("info", "circle.h5")
    assert "circle.h5: 1 matrix" in listed.out, listed
    run("multiply", "circle.h5", "circle.h5:/root/g/h/up/h/A", "-o", "c.h5", "--force", "--quiet")
    with h5py.File("deep.h5", "w") as file:
        group = file
        for _ in range(1000):
            group = group.create_group("g")
        group["A"] = integers(3, 3)
        file["B"] = integers(3, 3)
    listed = run("info", "deep.h5")
    assert "1 matrix, 1 other dataset" in listed.out, listed
    with h5py.File("many.h5", "w", libver="latest") as file:
        space = h5py.h5s.create_simple((2, 2))
        for i in range(20000):
            h5py.h5d.create(file.id, b"%d" % i, h5py.h5t.IEEE_F32LE, space)
    assert "many.h5: 20000 matrices" in run("info", "many.h5").out
    fails("multiply", "many.h5", "many.h5", "-o", "c.h5", code=2, says="holds 20000 matrices")


main(globals())
