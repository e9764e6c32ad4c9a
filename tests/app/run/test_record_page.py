"""docs/record.md names the fields of the log and of the record, all of them and no others."""
import json
import pathlib
import re

import h5py

from lib import main, np, run, write

PAGE = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "record.md").read_text()
LANES = ("read", "upload", "exchange", "pack", "multiply", "download", "write")


def named(heading):
    """The fields in the first column of the table below a heading."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    fields = [field for cell in cells for field in re.findall(r"`(\w+)`", cell)]
    assert len(fields) == len(set(fields)) > 0, (heading, fields)
    named = {field.replace("LANE", lane) for field in fields for lane in (LANES if "LANE" in field else [""])}
    # Multiplying has gflops; only runs of matrices in memory redistribute.
    return named - {"expected_multiply_GBps", "redistribute_seconds", "redistribute_bytes"}


def same(page, found):
    found = set(found)
    assert page == found, f"only on the page: {sorted(page - found)}; only in the record: {sorted(found - page)}"


# Missing where they say nothing.
ON_REQUEST = {"conjugate_a", "conjugate_b", "alpha_imag", "beta_imag", "digest", "reproducible"}


def multiply(kind, *options):
    """A run of matrices of a type; what its log says."""
    for name, shape in {"a": (30, 40), "b": (40, 20), "c0": (30, 20)}.items():
        write(f"{name}.h5", np.ones(shape, kind))
    run("multiply", "a.h5", "b.h5", "--add", "c0.h5", "-o", "c.h5", "--force", "--log", "run.json", *options, ranks=2)
    with open("run.json") as file:
        return json.load(file)


def test_fields():
    real = multiply("f4")
    log = multiply("c8", "--conjugate-a", "--conjugate-b", "--alpha", "1+2j", "--beta", "2j", "--reproducible")
    assert set(log) - set(real) == ON_REQUEST, set(log) - set(real)
    head, record, rank = named("The file of `--log`"), named("The record"), named("A row a rank")
    same(head | record | {"ranks"}, log)
    same(rank, log["ranks"][0])
    with h5py.File("c.h5") as file:
        same(record, file["C.run"].attrs)
        same(rank, file["C.run/ranks"].dtype.names)


def test_first_record():
    """What a run writes when it begins, as a generate that fails leaves it: the head and nothing else."""
    run("generate", "-o", "no/such/g.h5", "--shape", "3x4", "--log", "g.json", code=1)
    with open("g.json") as file:
        same(named("The file of `--log`"), json.load(file))


main(globals())
