"""info: what a file holds, refused datasets with the reason, and the devices of the ranks."""

import os
import shutil
import subprocess
import sys

import json

import h5py

from lib import fails, integers, main, np, read, run, write


def make_file():
    with h5py.File("many.h5", "w") as file:
        file.create_dataset("plain", data=np.ones((3, 5), ">f4"))
        file.create_dataset(
            "deep/packed", data=np.ones((64, 48)), chunks=(16, 8), shuffle=True, compression="gzip", compression_opts=4
        )
        file.create_dataset("deep/vector", data=np.ones(7))
        file.create_dataset("cube", data=np.ones((2, 3, 4)))
        file.create_dataset("complex", data=np.ones((2, 2), "c16"))
        file.create_dataset("words", data=np.array([[b"a", b"b"]]))
        matlab = file.create_dataset("matlab", data=np.ones((4, 9)))
        matlab.attrs["MATLAB_class"] = np.bytes_("double")


def line_of(text, path):
    lines = [line for line in text.splitlines() if line.startswith(path + " ")]
    assert len(lines) == 1, f"{path}: {text}"
    return lines[0]


def test_list():
    make_file()
    for ranks in (0, 2):
        text = run("info", "many.h5", ranks=ranks).out
        plain = line_of(text, "/plain")
        assert "3 x 5" in plain and "big-endian f32" in plain and "contiguous" in plain, plain
        packed = line_of(text, "/deep/packed")
        assert (
            "64 x 48" in packed
            and "f64" in packed
            and "chunked 16 x 8" in packed
            and "shuffle" in packed
            and "gzip" in packed
        ), packed
        matlab = line_of(text, "/matlab")
        assert "MATLAB_class double" in matlab and "9 x 4" in matlab and "--order col" in matlab, matlab
        complex_ = line_of(text, "/complex")
        assert "2 x 2" in complex_ and "c128 {r, i}" in complex_ and "cannot" not in complex_, complex_
        for path, reason in (
            ("/words", "string"),
        ):
            line = line_of(text, path)
            assert "cannot be multiplied" in line and reason in line, line
        assert "6 matrices, 1 other dataset" in text, text


def test_one():
    make_file()
    assert "64 x 48" in run("info", "many.h5:/deep/packed").out
    assert "64 x 48" in run("info", "many.h5/deep/packed").out
    assert "2 x 48" in run("info", "many.h5:/deep/packed[3:5,:]").out
    assert "2 x 3 x 4" in run("info", "many.h5:/cube", ranks=2).out
    fails("info", "many.h5:/absent", code=1, says="/absent")


def test_candidates():
    make_file()
    fails("compare", "many.h5", "many.h5", code=2, says=["/plain", "/deep/packed"])


# ---- what other programs write ------------------------------------------------------------------------------------


def pandas_group(file, path, kind, blocks=None):
    group = file.create_group(path)
    group.attrs["CLASS"] = np.bytes_("GROUP")
    group.attrs["pandas_type"] = np.bytes_(kind)
    group.attrs["encoding"] = np.bytes_("UTF-8")
    if blocks is not None:
        group.attrs["nblocks"] = np.int64(blocks)
    return group


def pandas_array(group, name, data):
    array = group.create_dataset(name, data=data)
    array.attrs["CLASS"] = np.bytes_("ARRAY")
    array.attrs["transposed"] = np.uint8(1)


def make_pandas(name, values, more):
    """As pandas 2 writes with HDFStore.put: a frame of one type; `more`: one of two types, a table and a series."""
    with h5py.File(name, "w") as file:
        frame = pandas_group(file, "df", "frame", 1)
        for axis, labels in (
            ("axis0", [b"a", b"b", b"c"]),
            ("axis1", np.arange(4)),
            ("block0_items", [b"a", b"b", b"c"]),
        ):
            pandas_array(frame, axis, np.array(labels))
        pandas_array(frame, "block0_values", values)
        if not more:
            return
        mixed = pandas_group(file, "mixed", "frame", 2)
        for axis in ("axis0", "axis1_level0", "axis1_label0", "block0_items", "block1_items"):
            pandas_array(mixed, axis, np.arange(4))
        pandas_array(mixed, "block0_values", values)
        pandas_array(mixed, "block1_values", np.ones((4, 1), "i8"))
        table = pandas_group(file, "g/table", "frame_table")
        table.create_dataset("table", data=np.zeros(4, [("index", "i8"), ("values_block_0", "f8", (3,))]))
        index = table.create_group("_i_table/index")
        index.create_dataset("ranges", data=np.zeros((0, 2), "i8"))
        index.create_dataset("bounds", data=np.zeros((0, 127), "i8"))
        series = pandas_group(file, "series", "series")
        pandas_array(series, "index", np.arange(5))
        pandas_array(series, "values", np.arange(5.0))


def test_pandas():
    values = integers(4, 3, "f8")
    make_pandas("frame.h5", values, more=False)
    assert run("info", "frame.h5").out == "/df/block0_values  4 x 3  f64  contiguous\nframe.h5: 1 matrix\n"
    one = write("one.h5", np.eye(3))
    for name in ("frame.h5", "frame.h5:df", "frame.h5:/df/block0_values"):
        run("multiply", name, one, "-o", "product.h5", "--force")
        assert np.array_equal(read("product.h5"), values), name
    make_pandas("store.h5", values, more=True)
    text = run("info", "store.h5").out
    for path in (
        "/df/block0_values",
        "/mixed/block0_values",
        "/mixed/block1_values",
        "/g/table/table",
        "/series/values",
    ):
        line_of(text, path)
    assert "store.h5: 4 matrices, 1 other dataset" in text and len(text.splitlines()) == 6, text
    assert "2 x 3" in run("info", "store.h5:df[1:3]").out
    fails("info", "store.h5:mixed", code=2, says=["2 types", "/mixed/block0_values"])
    fails("info", "store.h5:g/table", code=1, says=["table of records", "format='fixed'"])
    fails("info", "store.h5:/series", code=1, says="series of pandas")
    # without pandas' attributes such names are anybody's
    write("plain.h5", values, "axis0"), write("plain.h5", values, "g/ranks"), write(
        "plain.h5", values, "g/type"
    ), write("plain.h5", values, "g/index")
    assert "4 matrices" in run("info", "plain.h5").out


def test_octave():
    """As `save -hdf5` of Octave writes: a group a variable, column after column."""
    b = integers(5, 3, "f8")
    with h5py.File("octave.h5", "w") as file:
        for name, kind, value in (
            ("B", "matrix", b.T),
            ("scalar", "scalar", 3.0),
            ("text", "string", np.bytes_("abc")),
        ):
            group = file.create_group(name)
            group.attrs["OCTAVE_NEW_FORMAT"] = np.uint8(1)
            group.create_dataset("type", data=np.bytes_(kind))
            group.create_dataset("value", data=value)
    text = run("info", "octave.h5").out
    line = line_of(text, "/B/value")
    assert "3 x 5" in line and "Octave shows it as 5 x 3, use --order col" in line and "/type" not in text, text
    assert "2 matrices, 1 other dataset" in text, text
    one = write("octave_one.h5", np.eye(5))
    for name in ("octave.h5", "octave.h5:/B", "octave.h5:B", "octave.h5:/B/value"):
        run("multiply", one, name, "--order", "F", "-o", "octave_product.h5", "--force")
        assert np.array_equal(read("octave_product.h5").T, b), name
    assert "2 x 5" in run("info", "octave.h5:/B[0:2,:]").out
    assert "a single number" in run("info", "octave.h5:/scalar").out
    with h5py.File("octave.h5", "a") as file:
        del file["B/value"]
        file["B/value"] = h5py.ExternalLink("one.h5", "/C")
    fails("info", "octave.h5:/B", code=1, says="external link")


def test_matlab():
    with h5py.File("sparse.mat", "w", userblock_size=512) as file:
        file.create_dataset("#refs#/a", data=np.ones((2, 2)))
        full = file.create_dataset("full", data=np.ones((4, 9)))
        full.attrs["MATLAB_class"] = np.bytes_("double")
        sparse = file.create_group("S")
        sparse.attrs["MATLAB_class"], sparse.attrs["MATLAB_sparse"] = np.bytes_("double"), np.uint64(9)
        sparse.create_dataset("data", data=np.ones(3))
        scipy = file.create_group("X")
        scipy.attrs["encoding-type"] = "csr_matrix"
        scipy.create_dataset("data", data=np.ones(3))
    text = run("info", "sparse.mat").out
    assert "#refs#" not in text and text.endswith("\nsparse.mat: 1 matrix\n"), text
    assert "4 x 9" in run("info", "sparse.mat:full").out
    fails("info", "sparse.mat:/S", code=1, says=["sparse matrix of MATLAB, not a dataset; save full(...) of it"])


# ---- runs ---------------------------------------------------------------------------------------------------------


def test_run():
    """The run that made C, from the file and from its log."""
    a, b = integers(30, 40), integers(40, 20)
    write("run_a.h5", a), write("run_b.h5", b)
    run(
        "multiply",
        "run_a.h5",
        "run_b.h5",
        "-o",
        "made.h5",
        "--log",
        "made.json",
        "--trace",
        "made.trace",
        "--device",
        "cpu",
        "--verify",
        ranks=2,
    )
    text = run("info", "made.h5").out
    line_of(text, "/C")
    assert "cannot be multiplied" not in text and text.endswith("\nmade.h5: 1 matrix, 1 run\n"), text
    with open("made.json") as file:
        log = json.load(file)
    for said in (
        "/C.run, started " + log["started"],
        log["ranks"][0]["host"],
        "command     tessera multiply run_a.h5 run_b.h5",
        "30 x 20 x 40",
        "2 ranks, grid 2 x 1 x 1",
        "kernel      " + log["kernel"],
        "PASSED",
        f"{log['seconds']:.3f} s",
        "C           made.h5:/C",
    ):
        assert said in text, f"'{said}' is not in {text}"
    assert "row,col,k" not in text and "row,col,k" in run("info", "made.h5", "--ranks").out
    of_run = text.split("\n\n", 1)[1].rsplit("\n\n", 1)[0].split("\n", 1)[1]  # without where it was found
    for name in ("made.json", "made.h5:/C", "made.h5:C.run", "made.h5/C.run"):
        own = run("info", name).out
        assert of_run in own, f"{name}: {own}"
    assert "row,col,k" in run("info", "made.json", "--ranks", ranks=2).out
    run("compare", "made.h5", "made.h5:/C")  # plain, it is C
    trace = run("info", "made.trace").out
    assert "2 ranks" in trace and "Perfetto" in trace and "command     tessera multiply" in trace, trace
    for lane in ("read", "multiply", "write"):
        line_of(trace, lane)
    # two runs: a line each, all of one by its name
    run("multiply", "run_a.h5", "run_b.h5", "-o", "made.h5:/D", "--quiet")
    text = run("info", "made.h5").out
    for path in ("/C.run", "/D.run"):
        assert "30 x 20 x 40" in line_of(text, path), text
    assert "2 matrices, 2 runs" in text and "kernel" not in text, text
    assert "/D.run, started" in run("info", "made.h5:/D").out and text.count("started") == 0
    assert run("info", "made.h5", "--ranks").out.count("row,col,k") == 2


def test_damaged_seconds():
    """Numbers that no run has are cut, in a log and in a file."""
    write("damaged_a.h5", np.ones((3, 4))), write("damaged_b.h5", np.ones((4, 5)))
    run("multiply", "damaged_a.h5", "damaged_b.h5", "-o", "damaged.h5", "--log", "damaged.json", "--device", "cpu")
    with open("damaged.json") as file:
        record = json.load(file)
    parts = [name for name in record if name.startswith("setup_") and name != "setup_seconds"]
    assert len(parts) > 4, record
    with h5py.File("damaged.h5", "r+") as file:
        for name in parts:
            record[name] = 1e300
            file["C.run"].attrs[name] = 1e300
    with open("damaged.json", "w") as file:
        json.dump(record, file)
    for name in ("damaged.json", "damaged.h5"):
        assert "\nstart-up " in run("info", name).out, name


def test_warnings():
    """A line each, as the run said them."""
    whole = np.full((1, 700), 255, "u1")
    write("whole.h5", whole)
    options = ["--transpose-b", "--type", "f16", "--device", "cpu"]
    said = run("multiply", "whole.h5", "whole.h5", "-o", "warned.h5", *options).err.splitlines()
    said = [line.split("warning: ")[1] for line in said]
    assert len(said) == 2, said
    text = run("info", "warned.h5").out
    assert f"warnings {said[0]} {said[1]}" in " ".join(text.split()), text
    assert f"\nwarnings    {said[0].split()[0]} " in text and f"\n            {said[1].split()[0]} " in text, text


def test_json():
    with open("flat.json", "w") as file:
        json.dump({"program": "tessera", "seconds": 1.5, "list": [1, [2, 3], 4], "object": {}, "done": True}, file)
    lines = [line.split() for line in run("info", "flat.json").out.splitlines()]
    assert lines == [
        ["program", "tessera"],
        ["seconds", "1.5"],
        ["list", "3", "entries"],
        ["object", "0", "entries"],
        ["done", "true"],
    ], lines
    for text, says in (
        ('{"a": 1', "line 1"),
        ('{"command": "x",\n"rank_count": 1,\n"seconds": 2,\n"ranks": [{]}', "line 4"),
    ):
        with open("broken.json", "w") as file:
            file.write(text)
        fails("info", "broken.json", code=1, says=["broken.json", says, "cut short"])
    fails("info", "flat.json:/x", code=1, says="not an HDF5 file")
    fails("multiply", "flat.json", "flat.json", "-o", "x.h5", code=1, says="not an HDF5 file")


def test_width_of_runs():
    """Whatever the run said, of C and of logs, of runs that failed, too."""
    write("width_a.h5", np.full((1, 700), 255, "u1"))
    paths = ["width_a.h5", "./././././././width_a.h5"]
    options = ["--transpose-b", "--type", "f16", "--device", "cpu", "--log", "width.json", "--trace", "width.trace"]
    run("multiply", *paths, *options, "-o", "width.h5", "--verify")
    fails("multiply", *paths, "-o", "width2.h5", "--log", "failed.json", code=1, says="fit")
    for name in ("width.h5", "width.json", "width.trace", "failed.json"):
        text = run("info", name).out
        assert all(len(line) <= 80 for line in text.splitlines()), text
        said = " ".join(text.split())
        assert "tessera multiply width_a.h5 ./././././././width_a.h5" in said, said
        if name in ("width.h5", "width.json"):
            assert "\nwarnings    " in text and "\n            " in text, text
    assert "the columns of the first must be the rows of the second" in said, said


def test_names_of_types_are_whole():
    """Long ones, and what is written about other numbers of dimensions."""
    if np.dtype("longdouble").itemsize > 8:
        write("types.h5", np.ones((2, 2), "longdouble"), "ld")
        assert "80-bit floating point of x87 (read as f64)  contiguous" in line_of(run("info", "types.h5").out, "/ld")
    with h5py.File("types.h5", "a") as file:
        odd = h5py.h5t.STD_I16LE.copy()
        odd.set_precision(12)
        h5py.h5d.create(file.id, b"odd", odd, h5py.h5s.create_simple((2, 2)))
        file["cube"], file["vector"] = np.ones((2, 3, 4)), np.ones(5)
    text = run("info", "types.h5").out
    assert "integers of 12 bits in 2 bytes (read as i16)  contiguous" in line_of(text, "/odd")
    assert line_of(text, "/cube").startswith("/cube  2 x 3 x 4  f64  contiguous"), text
    assert run("info", "types.h5:/cube[1]").out.startswith("/cube  3 x 4  f64  contiguous"), text
    assert run("info", "types.h5:/cube[1:,:,2:]").out.startswith("/cube  1 x 3 x 2  f64  contiguous"), text
    assert run("info", "types.h5:/cube[1,2]").out.startswith("/cube  4  f64  contiguous"), text
    assert line_of(text, "/vector").startswith("/vector  5  f64  contiguous"), text


def test_devices_and_a_file():
    """Both are shown, the file once."""
    write("both.h5", np.ones((2, 3)), "A")
    text = run("info", "--devices", "both.h5", "--device", "cpu", ranks=2).out
    assert "rank 1 on " in text and line_of(text, "/A") and text.count("both.h5: 1 matrix") == 1, text


def test_devices():
    text = run("info", "--devices", "--device", "cpu", ranks=3).out
    for rank in range(3):
        lines = [line for line in text.splitlines() if line.startswith(f"rank {rank} on ")]
        assert len(lines) == 1 and "cores" in lines[0] and "memory" in lines[0], text
    for library in ("MPI: ", "CUDA-aware: ", "NCCL", "HDF5: ", "BLAS: "):
        assert library in text, text
    assert "parallel" in text or "serial" in text, text
    fails("info", "--devices", "--device", "abacus", ranks=2, code=2, says=["abacus", "cpu"])


def test_no_gpu():
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    fails("info", "--devices", "--device", "cuda", ranks=2, environment=hidden, code=1, says="--device cpu")
    assert "cores" in run("info", "--devices", environment=hidden).out
    a = write("a.h5", np.ones((2, 2)))
    fails("multiply", a, a, "-o", "c.h5", "--device", "cuda", ranks=2, environment=hidden, code=1, says="--device cpu")


def follow(command):
    """The shell runs it as it stands, where python3 is a Python that has h5py."""
    os.makedirs("bin", exist_ok=True)
    if not os.path.exists("bin/python3"):
        os.symlink(sys.executable, "bin/python3")
    subprocess.run(
        command,
        shell=True,
        check=True,
        timeout=60,
        env=dict(os.environ, PATH=os.path.abspath("bin") + ":" + os.environ["PATH"]),
    )


def test_advice_for_filters():
    """What the error says to do about a filter that this build lacks gives a file that can be multiplied."""
    if "lzf" in run("--version").out:
        return advise_for_unknown_filters()
    os.makedirs("odd 'folder'", exist_ok=True)
    data = np.arange(12.0 * 20).reshape(12, 20)
    for name, copy, path in (
        ("l.h5", "l-gzip.h5", "/lzf"),
        ("odd 'folder'/x y.h5", "odd 'folder'/x y-gzip.h5", "/g r/$A"),
    ):
        with h5py.File(name, "w") as file:
            file.create_dataset(path, data=data, dtype=">f8", chunks=(5, 7), compression="lzf")
        error = fails(
            "multiply",
            f"{name}:{path}",
            f"{name}:{path}",
            "--transpose-b",
            "-o",
            "p.h5",
            code=1,
            says=["lzf", "python3 -c", "h5py"],
        ).error
        assert "h5repack" not in error and "hdf5plugin" not in error, error
        follow(error[error.index("python3 -c") :])
        run("multiply", copy, copy, "--transpose-b", "-o", "p.h5", "--force")
        with h5py.File("p.h5") as file:
            assert np.array_equal(file["C"][:], data @ data.T)
    assert "tessera info l.h5:/lzf" in line_of(run("info", "l.h5").out, "/lzf")
    advise_for_unknown_filters()


def advise_for_unknown_filters():
    with h5py.File("u.h5", "a") as file:
        for number in (40123, 32013):
            made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            made.set_chunk((5, 5))
            made.set_filter(number, h5py.h5z.FLAG_OPTIONAL, ())
            h5py.h5d.create(file.id, b"f%d" % number, h5py.h5t.IEEE_F32LE, h5py.h5s.create_simple((10, 10)), made)
    error = fails("info", "u.h5:/f40123", code=1, says=["40123", "without that filter"]).error
    assert "python3" not in error and "h5repack" not in error, error
    fails("info", "u.h5:/f32013", code=1, says=["32013", "h5py and hdf5plugin", "python3 -c", "u-gzip.h5"])
    assert "tessera info u.h5:/f32013" in line_of(run("info", "u.h5").out, "/f32013")


def test_advice_for_external_storage():
    if not shutil.which("h5repack"):
        return
    with h5py.File("outside.h5", "w") as file:
        file.create_dataset("A", (4, 4), "f4", external=[("raw.bin", 0, 64)])[:] = 3
    error = fails("info", "outside.h5:/A", code=1, says=["external storage", "h5repack -l CONTI OLD.h5 NEW.h5"]).error
    command = error[error.index("h5repack") :].replace("OLD", "outside").replace("NEW", "inside")
    subprocess.run(command, shell=True, check=True, timeout=60)
    assert "4 x 4" in run("info", "inside.h5:/A").out


def as_json(*args, **more):
    """What --json - writes alone, and the text, which then is on stderr."""
    result = run("info", *args, "--json", "-", **more)
    said = json.loads(result.out)
    assert list(said)[:2] == ["format", "version"] and said["format"] == 2, said
    assert said["version"] == run("--version").out.split()[1], said
    return said, result.err


def test_json():
    make_file()
    with h5py.File("many.h5", "a") as file:
        file['odd "name"\n'] = np.ones((2, 3, 4), "i2")
    said, text = as_json("many.h5", ranks=2)
    assert said["file"] == "many.h5" and said["runs"] == said["devices"] == said["lanes"] == [], said
    found = {one["path"]: one for one in said["matrices"]}
    assert len(found) == len(said["matrices"]) == 7 and list(found)[:-1] == sorted(list(found)[:-1]), said
    assert found['/odd "name"\n']["shape"] == [2, 3, 4] and found['/odd "name"\n']["bytes"] == 48, said
    assert found["/matlab"]["shape"] == [4, 9] and found["/deep/vector"]["shape"] == [7], found
    for path, one in found.items():
        if '"' not in path:
            line = line_of(text, path)
            assert one["type"] in line and one["storage"] in line, (one, line)
    assert [one["path"] for one in said["others"]] == ["/words"] and "string" in said["others"][0]["why"], said
    one, _ = as_json("many.h5:/plain[1:3,0:2]")
    assert [(m["path"], m["shape"]) for m in one["matrices"]] == [("/plain", [2, 2])] and not one["others"], one
    assert as_json("many.h5:/plain")[0]["matrices"][0]["bytes"] == 60
    np.save("one.npy", np.ones((3, 2)))
    assert as_json("one.npy")[0]["matrices"][0]["shape"] == [3, 2]


def test_json_runs():
    """The record is the log's, wherever it is read from."""
    run("generate", "-o", "j.h5:/A", "--shape", "20x20", "--force")
    run("multiply", "j.h5:/A", "j.h5:/A", "-o", "j.h5:/C", "--device", "cpu", "--log", "j.json", "--trace", "t.json",
        "--force", ranks=2)
    with open("j.json") as file:
        log = json.load(file)
    own = {"status", "exit_code", "message", "stage", "progress", "ranks"}
    for name, path in (("j.h5", "/C.run"), ("j.h5:/C", "/C.run"), ("j.h5:/C.run", "/C.run"), ("j.json", "j.json")):
        runs = as_json(name)[0]["runs"]
        assert len(runs) == 1 and runs[0]["path"] == path, (name, runs)
        lost = {key for key in log if key not in own and runs[0]["record"][key] != log[key]}
        ranks = runs[0]["record"]["ranks"]
        assert not lost and [list(one) for one in ranks] == [list(one) for one in log["ranks"]], (name, lost)
    trace, text = as_json("t.json")
    assert trace["ranks"] == 2 and trace["seconds"] > 0 and trace["command"] == log["command"], trace
    assert {one["lane"] for one in trace["lanes"]} >= {"read", "multiply", "write"}, trace
    assert all(one["steps"] > 0 and f"\n{one['lane']} " in text for one in trace["lanes"]), (trace, text)


def test_json_devices():
    said, text = as_json("--devices", "--device", "cpu", ranks=2)
    assert [one["rank"] for one in said["devices"]] == [0, 1] and said["file"] is None, said
    for one in said["devices"]:
        assert one["kind"] == "cpu" and one["name"] in text and one["memory_bytes"] > one["memory_free_bytes"] > 0, one
        assert f"of this rank {one['cores']} core" in text and one["threads"] >= 1, (one, text)
    assert all(f"{name}: {version}\n" in text for name, version in said["libraries"].items()), (said, text)


def test_json_refused():
    make_file()
    fails("info", "many.h5:/nothing", "--json", "left.json", ranks=2, code=1, says="nothing")
    fails("info", "many.h5", "--json", "no/such/folder/x.json", code=1, says="no/such/folder")
    assert not os.path.exists("left.json")


main(globals())
