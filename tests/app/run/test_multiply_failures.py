"""multiply when something goes wrong: what was there stays as it was, nothing is left behind, no run hangs."""
import itertools
import os
import signal
import subprocess
import tempfile

import h5py

from lib import ENVIRONMENT, command_line, fails, leftovers, main, np, random, ranks_of, read, run
from lib import start_long_run, write


def content(name):
    with open(name, "rb") as file:
        return file.read()


def make_inputs():
    for name in ("a.h5", "b.h5"):
        if os.path.exists(name):
            os.remove(name)
    write("a.h5", np.ones((30, 40), "f4")), write("b.h5", np.ones((40, 20), "f4"))


def test_shapes():
    make_inputs()
    for ranks in (0, 3):
        fails(
            "multiply",
            "a.h5",
            "a.h5",
            "-o",
            "d.h5",
            ranks=ranks,
            code=1,
            says=[
                "'a.h5:/C' is 30 x 40 and 'a.h5:/C' is 30 x 40",
                "--transpose-a fits (40 x 40), or --transpose-b fits (30 x 30)",
            ],
        )
    fails(
        "multiply",
        "a.h5",
        "b.h5",
        "-o",
        "d.h5",
        "--add",
        "a.h5",
        ranks=2,
        code=1,
        says=["C0 'a.h5:/C' is 30 x 40", "30 x 20"],
    )
    fails(
        "multiply", "a.h5[30:99,:]", "b.h5", "-o", "d.h5", ranks=2, code=1, says="'30:99' selects none of the 30 rows"
    )
    fails(
        "multiply",
        "b.h5",
        "a.h5",
        "-o",
        "d.h5",
        code=1,
        says=["'b.h5:/C' is 40 x 20 and 'a.h5:/C' is 30 x 40", "; with the two names swapped they fit (30 x 20)"],
    )
    fails(
        "multiply",
        "a.h5",
        "b.h5",
        "--transpose-b",
        "-o",
        "d.h5",
        code=1,
        says=["'b.h5:/C' (40 x 20) transposed is 20 x 40", "; leaving out --transpose-b fits (30 x 20)"],
    )
    # an option that was given is called so, and one to be given like it
    for options, second, says in ((["--adjoint-a"], "b.h5", "; leaving out --adjoint-a fits (30 x 20)"),
                                  (["--adjoint-a", "--transpose-b"], "b.h5",
                                   "; leaving out --adjoint-a and --transpose-b fits (30 x 20)"),
                                  (["--adjoint-b"], "a.h5[:,:7]", "; --adjoint-a instead of --adjoint-b fits (40 x 7)"),
                                  (["--adjoint-b"], "b.h5[:30,:]", "; --adjoint-a instead of --adjoint-b fits"),
                                  (["--transpose-b"], "b.h5[:30,:]", "; --transpose-a instead of --transpose-b fits")):
        fails("multiply", *options, "a.h5", second, "-o", "d.h5", code=1, says=says)
    fails(
        "multiply",
        "a.h5[:7]",
        "b.h5[:13,:]",
        "-o",
        "d.h5",
        code=1,
        says=["'a.h5:/C[0:7,0:40]' is 7 x 40", "'b.h5:/C[0:13,0:20]' is 13 x 20", "neither"],
    )
    fails(
        "multiply",
        "a.h5[:7]",
        "b.h5[:13,:]",
        "-o",
        "d.h5",
        "--order",
        "F",
        code=1,
        says=["'a.h5:/C[0:7,0:30]' is 7 x 30", "'b.h5:/C[0:13,0:40]' is 13 x 40"],
    )
    fails(
        "verify",
        "b.h5",
        "a.h5",
        "a.h5",
        ranks=2,
        code=1,
        says=["'b.h5:/C' is 40 x 20 and 'a.h5:/C' is 30 x 40", "with the two names swapped they fit (30 x 20)"],
    )
    fails("verify", "a.h5", "b.h5", "a.h5", code=1, says=["C 'a.h5:/C' is 30 x 40", "30 x 20"])
    write("square.h5", np.ones((40, 40), "f4"))
    fails("verify", "a.h5[:,:30]", "b.h5[:30,:30]", "square.h5[:20,:20]", code=1, says="they must be the same")
    assert not os.path.exists("d.h5") and not leftovers(), os.listdir(".")


def follow(advice, names, flags):
    """The command line that the advice asks for, and the shape it promises."""
    assert all(flag in ("--transpose-a", "--transpose-b") for flag in flags)
    words, shape = advice.rstrip(")").split(" (")
    if words.startswith("with the two names swapped"):
        names = names[::-1]
        words = words.removeprefix("with the two names swapped").removeprefix(",").removeprefix(" they fit")
    words = words.removesuffix(" fits").strip()
    flags = set(flags)
    if words.startswith("leaving out "):
        flags -= set(words.removeprefix("leaving out ").split(" and "))
    elif " instead of " in words:
        to, of = words.split(" instead of ")
        assert of in flags and to not in flags, advice
        flags = flags - {of} | {to}
    elif words:
        assert words in ("--transpose-a", "--transpose-b") and words not in flags, advice
        flags.add(words)
    return names + sorted(flags), tuple(int(side) for side in shape.split(" x "))


def test_advice_is_followed():
    """Whatever a message about shapes says fits, is run as it stands; what no message names does not fit either."""
    sides = (2, 3, 4)
    for m, n in itertools.product(sides, sides):
        write("shapes.h5", np.ones((m, n)), f"s{m}{n}")
    flagses = ([], ["--transpose-a"], ["--transpose-b"], ["--transpose-a", "--transpose-b"])
    cases = [
        (["shapes.h5:/s%d%d" % a, "shapes.h5:/s%d%d" % b], flags, order)
        for a in itertools.product(sides, sides)
        for b in itertools.product(sides, sides)
        for flags in flagses
        for order in ("row", "col")
    ]
    followed = 0
    for names, flags, order in random.permutation(np.array(cases, dtype=object))[:60]:
        seen = [tuple(int(side) for side in name[-2:])[:: 1 if order == "row" else -1] for name in names]
        op = [shape[:: -1 if flag in flags else 1] for shape, flag in zip(seen, ("--transpose-a", "--transpose-b"))]
        options = ["--order", order, "-o", "advice.h5", "--force", "--quiet"]
        if op[0][1] == op[1][0]:
            continue
        error = fails("multiply", *names, *flags, *options, code=1, says="the columns of the first").error
        ways = error.split("must be the rows of the second; ")[1]
        if ways.startswith("neither"):
            assert not set(op[0]) & set(op[1]), error
            continue
        for way in ways.split(", or "):
            line, shape = follow(way, names, flags)
            run("multiply", *line, *options)
            assert read("advice.h5").shape == shape[:: 1 if order == "row" else -1], f"{error}: {line}"
            followed += 1
    assert followed > 20, followed


def test_advice_with_a_square():
    """The options belong to the places on the command line: swapping the names alone may change what is transposed."""
    write("a.h5", np.ones((20, 30))), write("s.h5", np.ones((30, 30)))
    error = fails("multiply", "a.h5", "s.h5", "--transpose-a", "-o", "d.h5", code=1, says="leaving out").error
    assert "swapped, --transpose-b instead of --transpose-a fits (30 x 20)" in error, error
    error = fails("multiply", "s.h5", "a.h5", "--transpose-a", "-o", "d.h5", code=1, says="--transpose-b fits").error
    assert "swapped they fit" not in error, error
    write("want.h5", np.ones((30, 20)))
    write("s.h5", np.ones((20, 20)))
    says = ["C 'want.h5:/C' is 30 x 20", ": with the two names swapped they fit (30 x 20)"]
    fails("verify", "s.h5", "a.h5", "want.h5", "--transpose-a", code=1, says=says)
    fails("verify", "a.h5", "s.h5", "want.h5", "--transpose-a", code=3, says="FAILED")  # a product, with other values


def test_force():
    make_inputs()
    write("c.h5", np.full((2, 2), 7.0), "other")
    run("multiply", "a.h5", "b.h5", "-o", "c.h5:/C", ranks=2)
    assert np.all(read("c.h5") == 40) and np.all(read("c.h5", "other") == 7)
    before = content("c.h5")
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5:/C", ranks=2, code=1, says=["/C", "--force"])
    assert content("c.h5") == before, "a refused run changed the file"
    run("multiply", "a.h5", "b.h5", "-o", "c.h5:/C", "--alpha", 2, "--force", ranks=2)
    assert np.all(read("c.h5") == 80) and np.all(read("c.h5", "other") == 7)
    assert not leftovers(), leftovers()


def test_output_over_input():
    make_inputs()
    run("multiply", "a.h5", "b.h5", "-o", "a.h5:/product", ranks=2)
    assert np.all(read("a.h5", "product") == 40) and np.all(read("a.h5") == 1)


def test_another_writer():
    """A file that another program has open for writing is neither read nor replaced, and what is said is not to
    replace it all the same."""
    make_inputs()
    write("c.h5", np.ones((2, 2)), "other")
    for ranks in (0, 2):
        with h5py.File("c.h5", "a"):
            refused = fails("multiply", "a.h5", "b.h5", "-o", "c.h5:/C", code=1, ranks=ranks,
                            says=["'c.h5' is locked", "or name another output"])
            assert "LOCKING" not in refused.error, refused
            fails("multiply", "c.h5", "b.h5", "-o", "d.h5", code=1, says="'c.h5' is locked", ranks=ranks)
    assert np.all(read("c.h5", "other") == 1) and not os.path.exists("d.h5") and not leftovers(), leftovers()


def test_panel_advice():
    """A smaller panel is advised where one was asked for that is not the smallest."""
    make_inputs()
    for panel, advised in (((), False), (("--panel", 1), False), (("--panel", 20), True)):
        said = fails("multiply", "a.h5", "b.h5", "-o", "d.h5", "--memory", 1, *panel, code=1, says="use --memory").error
        assert ("or a smaller --panel" in said) == advised, said


def test_no_matrix():
    with h5py.File("odd.h5", "w") as file:
        file["vector"], file["cube"] = np.ones(5), np.ones((2, 2, 2))
        file["complex"] = np.zeros((3, 3), [("r", "f4"), ("i", "f8")])
        file["words"] = np.array([[b"x"]])
        file["compound"] = np.zeros((2, 2), [("x", "f4"), ("y", "i4")])
        file.create_dataset("outside", (4, 4), "f4", external=[("raw.bin", 0, 64)])
        file["link"] = h5py.ExternalLink("a.h5", "/C")
    make_inputs()
    reasons = {"vector": "(5, a vector) and", "cube": "(2 x 2 x 2) and", "complex": "complex", "words": "string",
               "compound": "compound", "outside": "external", "link": "external"}
    for name, reason in reasons.items():
        fails("multiply", f"odd.h5:/{name}", "b.h5", "-o", "d.h5", ranks=0, code=1, says=[name, reason])
    fails("multiply", "odd.h5:/cube", "b.h5", "-o", "d.h5", ranks=4, code=1, says="cube")
    for path in ("/a/../b", "/..", "/a/.."):
        fails("multiply", "a.h5", "b.h5", "-o", "d.h5:" + path, code=2, says=["'..'", path])
    assert not os.path.exists("d.h5")


def test_log_folder():
    make_inputs()
    result = fails("multiply", "a.h5", "b.h5", "-o", "l.h5", "--log", "no/folder/run.json", ranks=2, code=1,
                   says="no/folder/run.json")
    assert not os.path.exists("no") and not os.path.exists("l.h5"), result  # refused before anything is multiplied


def test_file_size_limit():
    """As on a full disk: the system refuses the output's bytes."""
    make_inputs()
    write("c.h5", np.full((3, 3), 5.0))
    write("wide.h5", np.ones((3000, 4), "f4")), write("long.h5", np.ones((4, 3000), "f4"))
    before = content("c.h5")
    arguments = " ".join(command_line(["multiply", "wide.h5", "long.h5", "-o", "c.h5", "--force", "--device", "cpu"]))
    process = subprocess.run(["bash", "-c", f"ulimit -f 20000; exec {arguments}"], capture_output=True, text=True,
                             env=ENVIRONMENT, timeout=60)
    assert process.returncode == 1 and "tessera: error: " in process.stderr, process
    assert content("c.h5") == before and not leftovers(), os.listdir(".")


def test_late_allocation():
    """A file system in memory says that there is no room for C when a part of it has been written: the run fails, and
    what was there stays."""
    write("wide.h5", np.ones((3000, 4), "f4")), write("long.h5", np.ones((4, 3000), "f4"))
    with tempfile.TemporaryDirectory(prefix="tessera-cli-", dir="/dev/shm") as folder:
        write(f"{folder}/c.h5", np.full((3, 3), 5.0))
        for ranks in (0, 2):
            fails("multiply", "wide.h5", "long.h5", "-o", f"{folder}/c.h5", "--force", "--device", "cpu", ranks=ranks,
                  code=1, says="free some space",
                  environment={"LD_PRELOAD": os.environ["TSR_LATE_ALLOCATION"]})
            assert np.all(read(f"{folder}/c.h5") == 5) and os.listdir(folder) == ["c.h5"], os.listdir(folder)


def test_input_not_closed():
    """An input that was read and cannot be closed is no reason to fail, and none to end by a signal."""
    for chunks in (None, (10, 10)):
        write("fail.h5", np.ones((30, 40), "f4"), chunks=chunks), write("b.h5", np.ones((40, 20), "f4"))
        for ranks in (0, 2):
            for io in ("direct", "hdf5"):
                run("multiply", "fail.h5", "b.h5", "-o", "c.h5", "--force", "--io", io, "--verify", ranks=ranks,
                    environment={"LD_PRELOAD": os.environ["TSR_FAILING_CLOSE"], "TSR_CLOSES_FAILED": "closes"})
                assert np.all(read("c.h5") == 40) and not leftovers(), leftovers()
                assert os.path.getsize("closes") > 1, "every close went well"
                os.remove("closes"), os.remove("c.h5")
        os.remove("fail.h5")


def clean_folder():
    for name in os.listdir("."):
        if os.path.isfile(name):
            os.remove(name)
    write("big.h5", np.ones((3000, 3000), "f4"))
    write("c.h5", np.full((3, 3), 5.0))
    return content("c.h5")


def test_terminated():
    before = clean_folder()
    process = start_long_run()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode != 0, "a terminated run returned 0"
    assert content("c.h5") == before, "the earlier output changed"
    assert not leftovers(), os.listdir(".")


def test_killed():
    before = clean_folder()
    for one_rank in (True, False):
        process = start_long_run()
        if one_rank:
            os.kill(ranks_of(process)[1], signal.SIGKILL)
        else:
            for child in ranks_of(process) + [process.pid]:
                os.kill(child, signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode != 0, "a killed run returned 0"
        assert content("c.h5") == before, "the earlier output changed"
    run("multiply", "big.h5[0:30,:]", "big.h5[:,0:30]", "-o", "c.h5", "--force", ranks=2)
    assert np.all(read("c.h5") == 3000), "the run after the killed one"
    assert not leftovers(), f"the next run did not tidy up: {os.listdir('.')}"


main(globals())
