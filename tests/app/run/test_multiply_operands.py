"""What multiply reads stays as it is: C goes into a file that is read only where its dataset is named, and takes the
place of C0 alone."""

import os
import subprocess

import h5py

from lib import ENVIRONMENT, command_line, fails, leftovers, main, np, random, read, run, write

A, B, C0 = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2), np.arange(6.0).reshape(3, 2)


def content(name):
    with open(name, "rb") as file:
        return file.read()


def fresh():
    """a.h5:/A and b.h5:/B, and data.h5 that holds A, B and C0 under many names."""
    for name in os.listdir("."):
        if os.path.isfile(name) or os.path.islink(name):
            os.remove(name)
    write("a.h5", A, "A"), write("b.h5", B, "B")
    with h5py.File("data.h5", "w") as file:
        file["A"], file["g/B"], file["C"] = A, B, C0
        file["other"] = np.zeros((2, 2))
        file["A_hard"] = file["A"]
        file["h"] = file["g"]  # one group, two names
        for name, to in (("A_soft", "/A"), ("A_twice", "/A_soft"), ("s", "/g"), ("C_soft", "/C")):
            file[name] = h5py.SoftLink(to)
        for name, to, path in (
            ("A_here", "data.h5", "/A"),
            ("B_there", "b.h5", "/B"),
            ("A_round", "data.h5", "/A_twice"),
            ("elsewhere", "other.h5", "/X"),
            ("out", "b.h5", "/"),
        ):
            file[name] = h5py.ExternalLink(to, path)
        file["B_soft_there"] = h5py.SoftLink("/B_there")
        file["P.run/A"] = A
        file["Q.run"] = A
        file["R.run/a"] = file["A"]
        file["S.run/a"] = h5py.SoftLink("/A")


def refused(*args, says, file, ranks=0):
    before = content(file)
    fails("multiply", *args, code=2, says=says, ranks=ranks)
    assert content(file) == before and not leftovers(), f"{args} changed {file}: {os.listdir('.')}"


def test_file_without_a_dataset_named():
    fresh()
    os.symlink("a.h5", "soft.h5")
    os.link("a.h5", "hard.h5")
    os.makedirs("folder", exist_ok=True)
    if not os.path.islink("folder/here"):
        os.symlink("..", "folder/here")
    for output in ("a.h5", "b.h5", "./a.h5", "soft.h5", "hard.h5", "folder/here/b.h5", "a.h5:/"):
        for force in ((), ("--force",)):
            refused(
                "a.h5",
                "b.h5",
                "-o",
                output,
                *force,
                file="a.h5" if "b.h5" not in output else "b.h5",
                says=["is read from", ":/C"],
                ranks=2 if output == "b.h5" else 0,
            )
    refused("a.h5[0:2,:]", "b.h5", "-o", "a.h5", "--dry-run", file="a.h5", says=":/C")
    write("c.h5", C0)
    refused("a.h5", "b.h5", "--add", "c.h5", "-o", "c.h5", "--force", file="c.h5", says=["C0", "c.h5:/C"])
    run("multiply", "a.h5", "b.h5", "-o", "a.h5:/C")
    assert np.array_equal(read("a.h5"), A @ B) and np.array_equal(read("a.h5", "A"), A)
    run("multiply", "a.h5:/A", "b.h5", "-o", "b.h5:/x/C", ranks=2)
    assert np.array_equal(read("b.h5", "x/C"), A @ B) and np.array_equal(read("b.h5", "B"), B)


def test_operands_are_not_replaced():
    """By any name, in any file that leads to them; with --force, and without it no advice to use it."""
    fresh()
    outputs = {
        "A": "A",
        "/A": "A",
        "//A": "A",
        "A_hard": "A",
        "A_soft": "A",
        "A_twice": "A",
        "A_here": "A",
        "A_round": "A",
        "g/B": "B",
        "h/B": "B",
        "s/B": "B",
        "s/./B": "B",
        "g": "B",
        "h": "B",
        "s": "B",
        "Q": "Q",
        "R": "A",
    }
    for path, role in outputs.items():
        a = "data.h5:/Q.run" if role == "Q" else "data.h5:/A"
        says = f"would replace {'A' if role == 'Q' else role} "
        output = "data.h5:" + (path if path.startswith("/") else "/" + path)
        refused(a, "data.h5:/s/B", "-o", output, "--force", file="data.h5", says=says)
        refused(a, "data.h5:/s/B", "-o", output, file="data.h5", says=says)
    refused(
        "data.h5:/A[0:2,:]",
        "data.h5:/g/B[:,1:2]",
        "-o",
        "data.h5:/A",
        "--force",
        file="data.h5",
        says="would replace A ",
        ranks=3,
    )
    refused("data.h5:/A", "b.h5", "-o", "data.h5:/B_there", "--force", file="data.h5", says="would replace B ")
    refused("data.h5:/A", "b.h5", "-o", "data.h5:/B_soft_there", "--force", file="data.h5", says="would replace B ")
    refused(
        "data.h5:/P.run/A", "b.h5", "-o", "data.h5:/P", "--force", file="data.h5", says=["record", "would replace A "]
    )
    refused(
        "data.h5:/S.run/a", "b.h5", "-o", "data.h5:/S", "--force", file="data.h5", says=["record", "would replace A "]
    )
    refused("data.h5:/A_twice", "b.h5", "-o", "data.h5:/A_soft", "--force", file="data.h5", says="would replace A ")
    refused(
        "data.h5:/A",
        "data.h5:/g/B",
        "--order",
        "col",
        "--transpose-a",
        "--transpose-b",
        "-o",
        "data.h5:/g/B",
        "--force",
        file="data.h5",
        says="would replace B ",
    )
    os.link("data.h5", "hard.h5")
    refused("data.h5:/A", "b.h5", "-o", "hard.h5:/A", "--force", file="data.h5", says="would replace A ")


def test_links_to_other_things_are_replaced():
    fresh()
    for path in ("elsewhere", "B_there", "C_soft", "other", "S"):
        run("multiply", "data.h5:/A", "data.h5:/g/B", "-o", f"data.h5:/{path}", "--force")
        assert np.array_equal(read("data.h5", path), A @ B), path
    assert (
        np.array_equal(read("data.h5", "A"), A)
        and np.array_equal(read("data.h5", "g/B"), B)
        and np.array_equal(read("data.h5"), C0)
    )


def test_operand_called_like_a_slice():
    """/A is not read where the operand is the dataset /A[0]; that one keeps its place, whatever leads to it."""
    with h5py.File("called.h5", "w") as file:
        file["A"], file["g/A[0]"], file["B"] = np.zeros((3, 4)), A, B
        file["A[0]"] = h5py.SoftLink("/g/A[0]")
    for name, target in (("A[0]", "A[0]/"), ("A[0]", "g/A[0]/"), ("A[0]", "g"), ("A[:2]", "A"), ("A", "A")):
        fails(
            *("multiply", f"called.h5:/{name}", "called.h5:/B", "-o", f"called.h5:/{target}", "--force"),
            code=2,
            says=["would replace A", "/" + name.replace("[:2]", "")],
        )
    run("multiply", "called.h5:/A[0]", "called.h5:/B", "-o", "called.h5:/A", "--force")
    with h5py.File("called.h5") as file:
        assert np.array_equal(file["A"], A @ B) and np.array_equal(file["A[0]"], A), list(file)


def test_c0_in_place():
    fresh()
    fails("multiply", "a.h5", "b.h5", "--add", "data.h5:/C", "-o", "data.h5:/C", code=1, says="--force")
    for times, ranks in ((1, 0), (2, 2), (3, 3)):
        run("multiply", "a.h5", "b.h5", "--add", "data.h5:/C", "-o", "data.h5:/C", "--force", "--verify", ranks=ranks)
        assert np.array_equal(read("data.h5"), C0 + times * (A @ B))
    assert np.array_equal(read("data.h5", "A"), A) and not leftovers()
    write("c.h5", C0)  # alone in its file
    for chunks in ((), ("--chunk", "2x1")):
        run("multiply", "a.h5", "b.h5", "--add", "c.h5", "-o", "c.h5:/C", "--force", *chunks, ranks=2)
    assert np.array_equal(read("c.h5"), C0 + 2 * (A @ B))
    # C0 is also A, or would be lost instead of replaced
    write("square.h5", np.eye(3))
    refused(
        "square.h5",
        "square.h5",
        "--add",
        "square.h5",
        "-o",
        "square.h5:/C",
        "--force",
        file="square.h5",
        says="would replace A ",
    )
    with h5py.File("data.h5", "a") as file:
        file["T.run"], file["t/C"], file["u"] = C0, C0, h5py.SoftLink("/t")
    refused(
        "a.h5",
        "b.h5",
        "--add",
        "data.h5:/T.run",
        "-o",
        "data.h5:/T",
        "--force",
        file="data.h5",
        says="would replace C0 ",
    )
    refused(
        "a.h5", "b.h5", "--add", "data.h5:/u/C", "-o", "data.h5:/u", "--force", file="data.h5", says="would replace C0 "
    )


def test_c0_of_a_part():
    """The rest of a dataset is not lost: where C0 is a part of it, the output does not take its place."""
    fresh()
    big = random.normal(size=(40, 40))
    write("big.h5", big, "big")
    with h5py.File("big.h5", "a") as file:
        file["also"] = file["big"]
    for part in ("[:3,:2]", "[37:,-2:]", "[0:3,:2]"):
        options = ("--add", f"big.h5:/big{part}", "--force", "--order", "row")
        for output in ("big.h5:/big", "big.h5:/also"):
            refused("a.h5", "b.h5", *options, "-o", output, file="big.h5", says=["would replace C0", part, "lost"])
    flip = ("--order", "col", "--transpose-a", "--transpose-b")
    into = ("--add", "big.h5:/big[:3,:2]", "-o", "big.h5:/big", "--force")
    refused("a.h5", "b.h5", *flip, *into, file="big.h5", says="lost")
    run("multiply", "a.h5", "b.h5", "--add", "big.h5:/big[:3,:2]", "-o", "big.h5:/C")
    assert np.array_equal(read("big.h5", "big"), big) and np.allclose(read("big.h5"), big[:3, :2] + A @ B)
    run("multiply", "a.h5", "b.h5", "--add", "data.h5:/C[:9,:]", "-o", "data.h5:/C", "--force")  # all of it
    assert np.array_equal(read("data.h5"), C0 + A @ B)


def test_records_are_not_outputs():
    """What a run left beside its C is neither replaced nor added to, by whatever links."""
    fresh()
    run("multiply", "a.h5", "b.h5", "-o", "d.h5:/g/C", ranks=2)
    with h5py.File("d.h5", "a") as file:
        file["hard"], file["soft"] = file["g/C.run"], h5py.SoftLink("/g/C.run")
    for path in ("/g/C.run/ranks", "/g/C.run/x/y", "/hard/ranks", "/soft/x"):
        for command in (["a.h5", "b.h5"], ["d.h5:/g/C", "d.h5:/g/C", "--transpose-b"]):
            refused(*command, "-o", "d.h5:" + path, "--force", file="d.h5", says=["record of a run", "choose another"])
    for path in ("/g/C.run", "/g/new.run", "g/C.run/"):
        refused("a.h5", "b.h5", "-o", "d.h5:" + path, "--force", file="d.h5", says=["record of '/g/", "choose"])
    fails("multiply", "a.h5", "b.h5", "-o", "new.h5:/C.run", code=2, says="record of '/C'")
    fails("generate", "-o", "d.h5:/g/C.run/ranks", "--shape", "2x2", "--force", code=2, says="record of a run")
    assert not os.path.exists("new.h5") and "/g/C.run, started" in run("info", "d.h5").out
    run("multiply", "a.h5", "b.h5", "-o", "d.h5:/plain.run/C")  # a group that is no record
    assert np.array_equal(read("d.h5", "plain.run/C"), A @ B)


def test_c0_in_place_fails_whole():
    """As on a disk that fills up on the way: C0 is as it was."""
    fresh()
    write("wide.h5", random.random((2000, 2))), write("long.h5", random.random((2, 2000))), write(
        "c.h5", random.random((2000, 2000))
    )
    before = content("c.h5")
    arguments = [
        "multiply",
        "wide.h5",
        "long.h5",
        "--add",
        "c.h5",
        "-o",
        "c.h5:/C",
        "--force",
        "--device",
        "cpu",
        "--compress",
        "gzip:1",
    ]
    command = f"ulimit -f 20000; exec {' '.join(command_line(arguments))}"
    process = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=ENVIRONMENT, timeout=60)
    assert process.returncode == 1 and "File too large" in process.stderr, process
    assert content("c.h5") == before and not leftovers(), os.listdir(".")


main(globals())
