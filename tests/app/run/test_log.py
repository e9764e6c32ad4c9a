"""--log FILE: whatever becomes of a run, FILE never says that an earlier run's success is this one's."""

import json
import os
import shutil
import signal
import subprocess
import time

import h5py

from lib import ENVIRONMENT, command_line, fails, integers, leftovers, main, np, own_lines, random, read, run, write

FORMAT = 2


def log(file="run.json"):
    with open(file) as text:
        found = json.load(text)
    assert found["format"] == FORMAT, found
    return found


def old_success(file="run.json"):
    """What an earlier run left in the log."""
    with open(file, "w") as text:
        json.dump({"command": "an earlier run", "check": "PASSED", "seconds": 1.0, "status": "done"}, text)


def clean():
    for name in os.listdir("."):
        if os.path.isdir(name) and not os.path.islink(name):
            shutil.rmtree(name)
        else:
            os.remove(name)
    write("a.h5", np.ones((30, 40), "f4")), write("b.h5", np.ones((40, 20), "f4"))
    old_success()


def check_ended(found, status, code, says, stage, progress=0):
    assert found["status"] == status and found["exit_code"] == code, found
    assert says in found["message"] and found["stage"] == stage and found["progress"] == progress, found
    assert found["command"] != "an earlier run" and "seconds" not in found, found
    assert not leftovers(), os.listdir(".")


def test_done():
    clean()
    for ranks in (0, 2):
        before = time.time()
        run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--verify", "--log", "run.json", ranks=ranks)
        found = log()
        assert found["status"] == "done" and found["exit_code"] == 0 and found["message"] == "", found
        assert found["stage"] == "done" and found["progress"] == 1 and len(found["ranks"]) == max(ranks, 1), found
        assert (
            "PASSED" in found["check"] and found["rank_count"] == max(ranks, 1) and "multiply" in found["command"]
        ), found
        started = time.mktime(time.strptime(found["started"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
        assert before - 2 < started < time.time() + 2, found["started"]
        with h5py.File("c.h5") as file:
            attributes = dict(file["C.run"].attrs)
        assert attributes["format"] == FORMAT and attributes["started"] == found["started"], attributes
        for name in ("command", "check", "kernel", "seconds", "m", "limit_lane"):
            assert attributes[name] == found[name], name
        assert set(found) - set(attributes) == {"status", "exit_code", "message", "stage", "progress", "ranks"}
        assert not leftovers(), os.listdir(".")


def test_refused_runs():
    """Wrong usage, missing files, wrong shapes, an output that is there: FILE says so."""
    cases = {
        ("--panel", "x"): (2, "--panel"),
        ("--panel=0", "--log=run.json"): (2, "--panel"),
        ("--beta", 2): (2, "--add C0"),
        ("--add", "absent.h5"): (1, "absent.h5"),
        ("--add", "a.h5"): (1, "30 x 40"),
        ("--transpose-a",): (1, "30"),
        ("--kernel", "none"): (2, "none"),
        ("--grid", "3x3"): (2, "3x3"),
    }
    clean()
    for options, (code, says) in cases.items():
        for ranks in (0, 2):
            old_success()
            log_option = [] if any("--log" in str(o) for o in options) else ["--log", "run.json"]
            result = fails(
                "multiply", "a.h5", "b.h5", "-o", "c.h5", *options, *log_option, code=code, says=says, ranks=ranks
            )
            check_ended(log(), "failed", code, says, "start-up")
            assert log()["message"] in result.error, result
    for args, code, says in (
        (("a.h5", "-o", "c.h5"), 2, "two matrices"),
        (("a.h5", "absent.h5", "-o", "c.h5"), 1, "absent.h5"),
        (("a.h5", "b.h5", "-o", "b.h5"), 2, "b.h5"),
    ):
        old_success()
        fails("multiply", *args, "--log", "run.json", code=code, says=says)
        check_ended(log(), "failed", code, says, "start-up")
    os.remove("run.json")
    fails("multiply", "a.h5", "absent.h5", "-o", "c.h5", "--log", "run.json", code=1, says="absent.h5")
    check_ended(log(), "failed", 1, "absent.h5", "start-up")


def test_wrong_usage_keeps_other_files():
    """A command line that was not understood replaces logs, and nothing else."""
    clean()
    with open("notes.txt", "w") as text:
        text.write("keep me")
    before = open("a.h5", "rb").read()
    for file in ("notes.txt", "a.h5"):
        fails(
            "multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", file, "--no-such-option", code=2, says="no-such-option"
        )
        fails("multiply", "--no-such-option", "--log", file, code=2, says="no-such-option")
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", "a.h5", code=2, says="--log")
    fails("generate", "-o", "a.h5", "--shape", "2x2", "--force", "--log", "a.h5", code=2, says="--log")
    for name, text in (("settings.json", '{"name": "x"}'), ("bench.json", '{"format": 2, "version": "0.1.0"}')):
        with open(name, "w") as file:
            file.write(text)
        fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", name, "--panel", "x", code=2, says="--panel")
        assert open(name).read() == text, name
    assert open("notes.txt").read() == "keep me" and open("a.h5", "rb").read() == before


def test_refused_log():
    """Where the log's own name is what is refused, nothing is written there, not even over a log of ours."""
    clean()
    before = open("run.json").read()
    two = ("multiply", "a.h5", "b.h5", "-o", "c.h5")
    for ranks in (0, 2):
        fails(*two, "--log", "run.json", "--trace", "run.json", code=2, says="--trace run.json", ranks=ranks)
        fails("multiply", "a.h5", "b.h5", "-o", "run.json", "--log", "run.json", code=2, says="--log", ranks=ranks)
        fails("generate", "--shape", "2x2", "-o", "run.json", "--log", "run.json", code=2, says="--log", ranks=ranks)
        assert open("run.json").read() == before and not leftovers(), os.listdir(".")
    fails(*two, "--log", "run.json", "--trace", "c.h5", code=2, says="--trace")
    check_ended(log(), "failed", 2, "--trace c.h5", "start-up")


def test_links_and_data():
    """A link stays, and what it leads to is the log; a file of data is no log, whatever it holds."""
    clean()
    os.symlink("run.json", "link.json")
    two = ("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force")
    run(*two, "--log", "link.json")
    assert os.path.islink("link.json") and log()["status"] == "done", log()
    fails("multiply", "a.h5", "absent.h5", "-o", "c.h5", "--log", "link.json", code=1, says="absent.h5")
    assert os.path.islink("link.json") and log()["status"] == "failed", log()
    old_success()
    fails(*two, "--log", "link.json", "--bogus", code=2, says="--bogus")
    assert os.path.islink("link.json") and log()["status"] == "failed", log()
    os.remove("link.json")
    os.symlink("nowhere.json", "link.json")
    for option in ("--log", "--trace"):
        fails(*two, option, "link.json", code=1, says="'link.json' is a symbolic link to nothing")
    assert os.readlink("link.json") == "nowhere.json" and not os.path.exists("nowhere.json")
    os.remove("link.json")
    for ranks in (0, 2):
        result = fails(*two, "--log", "nowhere/run.json", ranks=ranks, code=1, says="cannot write the log 'nowhere/run")
        assert own_lines(result.err) == [result.error], result
    write("other.h5", integers(3, 4))
    with h5py.File("block.mat", "w", userblock_size=512) as file:
        file["x"] = integers(3, 4)
    np.save("other.npy", integers(3, 4))
    np.arange(12, dtype="f4").tofile("other.bin")
    for name, kind in (("other.h5", "HDF5"), ("block.mat", "HDF5"), ("other.npy", ".npy"), ("other.bin", "binary")):
        before = open(name, "rb").read()
        for option in ("--log", "--trace"):
            fails(*two, option, name, code=1, says=[name, kind])
        assert open(name, "rb").read() == before and not leftovers(), os.listdir(".")
        os.remove(name)
    for text in ("", "notes"):
        with open("run.json", "w") as file: file.write(text)
        run(*two, "--log", "run.json")
        assert log()["status"] == "done", text


def test_another_launcher():
    """Ranks of another MPI do not run, and an earlier success does not stand."""
    clean()
    old_success()
    before = open("run.json").read()
    command = ("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--log", "run.json")
    fails(*command, "--dry-run", environment={"PMI_SIZE": "3", "PMI_RANK": "0"}, code=2, says="3 ranks")
    assert open("run.json").read() == before
    fails(*command, environment={"PMI_SIZE": "3", "PMI_RANK": "0"}, code=2, says="3 ranks")
    check_ended(log(), "failed", 2, "3 ranks", "start-up")


def test_dry_run_leaves_the_log():
    clean()
    before = open("run.json").read()
    run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--dry-run", "--log", "run.json")
    fails("multiply", "a.h5", "a.h5", "-o", "c.h5", "--dry-run", "--log", "run.json", code=1, says="30")
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--dry-run", "--log", "no/run.json", code=1, says="no/run.json")
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", "run.json", "--io", "tpu", "--dry-run", code=2, says="tpu")
    assert open("run.json").read() == before and not leftovers(), os.listdir(".")


def test_place_not_writable():
    """Refused before anything is read; nothing is replaced."""
    clean()
    os.mkdir("folder.json")
    for file in ("no/run.json", "folder.json", "a.h5/run.json"):
        fails(
            "multiply",
            "a.h5",
            "b.h5",
            "-o",
            "c.h5",
            "--log",
            file,
            code=1,
            says=["log", file],
            ranks=2 if file == "no/run.json" else 0,
        )
        fails("generate", "-o", "g.h5", "--shape", "2x2", "--log", file, code=1, says=["log", file])
    assert not os.path.exists("c.h5") and not os.path.exists("g.h5") and not leftovers(), os.listdir(".")


def test_full_disk():
    clean()
    write("wide.h5", random.random((2000, 2))), write("long.h5", random.random((2, 2000)))
    for more, stage, progress in (((), "start-up", 0), (("--compress", "gzip:1"), "multiply", None)):
        old_success()
        arguments = ["multiply", "wide.h5", "long.h5", "-o", "c.h5", "--device", "cpu", "--log", "run.json", *more]
        process = subprocess.run(
            ["bash", "-c", f"ulimit -f 20000; exec {' '.join(command_line(arguments))}"],
            capture_output=True,
            text=True,
            env=ENVIRONMENT,
            timeout=60,
        )
        found = log()
        assert process.returncode == 1 and found["message"] in process.stderr, process
        check_ended(
            found,
            "failed",
            1,
            "",
            stage if more == () or found["stage"] != "place chunks" else "place chunks",
            found["progress"] if progress is None else progress,
        )
        assert found["message"] and not os.path.exists("c.h5"), found


def test_failing_rank():
    """Rank 1 of 2 fails while rank 0 waits for it."""
    clean()
    write("fail.h5", np.ones((400, 400)))
    write("c.h5", np.full((3, 3), 5.0))
    arguments = [
        "multiply",
        "fail.h5",
        "fail.h5",
        "-o",
        "c.h5",
        "--force",
        "--device",
        "cpu",
        "--grid",
        "2x1",
        "--log",
        "run.json",
    ]
    process = subprocess.run(
        command_line(arguments, ranks=2),
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(ENVIRONMENT, LD_PRELOAD=os.environ["TSR_FAILING_READ"]),
    )
    assert process.returncode == 1 and "rank 1 on " in process.stderr, process
    check_ended(log(), "failed", 1, "rank 1 on ", "multiply")
    assert "fail.h5" in log()["message"] and np.all(read("c.h5") == 5), log()


def start_long_run(*more, ranks=2, file="big.h5", environment=None):
    """Small panels that take long; returns when the first are multiplied and the log says that the run is under way."""
    command = command_line(
        [
            "multiply",
            file,
            file,
            "-o",
            "c.h5",
            "--force",
            "--device",
            "cpu",
            "--panel",
            "1",
            "--kernel",
            "reference",
            "--log",
            "run.json",
            *more,
        ],
        ranks=ranks,
    )
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(ENVIRONMENT, **(environment or {})),
        start_new_session=True,
    )
    for _ in range(600):
        assert process.poll() is None, f"the run ended early: {process.communicate()}"
        if "running" in open("run.json").read() and [name for name in os.listdir(".") if ".c.h5.tessera" in name]:
            time.sleep(1)
            found = log()
            assert found["status"] == "running" and found["exit_code"] is None and found["message"] == "", found
            assert found["command"] != "an earlier run" and found["rank_count"] == max(ranks, 1), found
            return process
        time.sleep(0.05)
    raise AssertionError(f"the run did not begin: {os.listdir('.')}")


def long_run_inputs():
    clean()
    write("big.h5", np.ones((3000, 3000), "f4"))
    write("c.h5", np.full((3, 3), 5.0))


def test_failed_check():
    """An operand that is another after it was read, and does not show it, and a C of chunks, which are written once:
    nothing is published."""
    clean()
    write("changing.h5", np.ones((2000, 2000), "f4"))
    before = read("a.h5")
    process = start_long_run("--verify", "--chunk", "500x500", file="changing.h5")
    with h5py.File("changing.h5", "r") as file:
        offset = file["C"].id.get_offset()
    before_change = os.stat("changing.h5")
    with open("changing.h5", "r+b") as file:
        file.seek(offset)
        file.write(np.float32(1000).tobytes())
    os.utime("changing.h5", ns=(before_change.st_atime_ns, before_change.st_mtime_ns))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, (out, err)
    check_ended(log(), "check failed", 3, "FAILED", "check", progress=1)
    assert log()["message"] in " ".join(err.split()), err
    assert not os.path.exists("c.h5") and np.array_equal(read("a.h5"), before), err


def test_stopped():
    long_run_inputs()
    for ranks, number in (
        (0, signal.SIGTERM),
        (0, signal.SIGINT),
        (0, signal.SIGUSR1),
        (0, signal.SIGXCPU),
        (2, signal.SIGTERM),
    ):
        old_success()
        process = start_long_run(ranks=ranks)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 75 if ranks == 0 else process.returncode != 0, process.returncode
        found = log()
        check_ended(
            found,
            "stopped",
            75,
            "stopped on request (" + signal.Signals(number).name + ")",
            "multiply",
            found["progress"],
        )
        assert 0 <= found["progress"] < 1 and found["rank_count"] == max(ranks, 1), found
        assert np.all(read("c.h5") == 5), "the earlier output changed"


def test_ignored_signals():
    """nohup's runs go on, also where what MPI loads handles SIGHUP."""
    long_run_inputs()
    for more in ({}, {"LD_PRELOAD": os.environ["TSR_FAILING_READ"], "TSR_MPI_TAKES_SIGHUP": "1"}):
        previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # children inherit it
        process = start_long_run(ranks=0, environment=more)
        signal.signal(signal.SIGHUP, previous)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        assert process.poll() is None, process.communicate()
        process.terminate()
        process.communicate(timeout=60)
        assert "SIGTERM" in log()["message"], log()


def ranks_of(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        return [int(child) for child in file.read().split()]


def test_killed():
    """A killed rank says nothing: FILE says that the run was stopped, by the launcher, or that it is running."""
    long_run_inputs()
    process = start_long_run(ranks=0)
    process.kill()
    process.communicate(timeout=60)
    assert log()["status"] == "running", log()
    for victim in (0, 1):
        old_success()
        process = start_long_run()
        os.kill(ranks_of(process)[victim], signal.SIGKILL)
        process.communicate(timeout=60)
        assert process.returncode != 0 and log()["status"] in ("running", "stopped"), log()


def test_last_replacement_fails():
    """C stands, the exit code is 0 with a warning, and FILE says that the run is under way: its folder is gone."""
    clean()
    write("big.h5", np.ones((800, 800), "f4"))
    for what in ("multiply", "generate"):
        os.mkdir("logs")
        old_success("logs/run.json")
        if what == "multiply":
            arguments = [
                "multiply",
                "big.h5",
                "big.h5",
                "-o",
                "c.h5",
                "--device",
                "cpu",
                "--panel",
                "1",
                "--kernel",
                "reference",
                "--log",
                "logs/run.json",
            ]
        else:
            arguments = [
                "generate",
                "-o",
                "c.h5",
                "--force",
                "--shape",
                "5000x5000",
                "--distribution",
                "normal",
                "--log",
                "logs/run.json",
            ]
        process = subprocess.Popen(
            command_line(arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        while process.poll() is None and "running" not in open("logs/run.json").read():
            time.sleep(0.002)
        os.rename("logs", "gone")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and "warning" in err and "run.json" in err and "error" not in err, (out, err)
        assert log("gone/run.json")["status"] == "running" and os.path.exists("c.h5"), log("gone/run.json")
        assert os.listdir("gone") == ["run.json"], os.listdir("gone")
        shutil.rmtree("gone")
    assert not leftovers(), os.listdir(".")


def test_failing_trace():
    """What fails before the log says "done" is a failure there, though C is in place."""
    clean()
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", "run.json", "--trace", "/dev/full", code=1, says="trace")
    check_ended(log(), "failed", 1, "trace", "trace", progress=1)
    assert np.all(read("c.h5") == 40)


def test_standard_output_fails():
    """C is in place, and the log says all of it: a record that says "done" is not replaced."""
    clean()
    for what in (["multiply", "a.h5", "b.h5"], ["generate", "--shape", "30x20", "--seed", "3"]):
        for ranks in (0, 2):
            old_success()
            command = " ".join(command_line([*what, "-o", "c.h5", "--force", "--log", "run.json"])) + " > /dev/full"
            launcher = command_line([], ranks)[:-1]
            process = subprocess.run(
                [*launcher, "bash", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60, env=ENVIRONMENT
            )
            assert process.returncode == 1 and "in place, but standard output could not" in process.stderr, process
            found = log()
            assert found["status"] == "done" and found["exit_code"] == 0 and found["message"] == "", found
            assert found["seconds"] > 0 and found["progress"] == 1 and read("c.h5").shape == (30, 20), found
            assert found.get("m", 30) == 30 and found.get("seed", 3) == 3 and not leftovers(), found


def test_failure_before_the_log():
    """Rank 1 has no memory for its log: the file is not left as one of a run under way."""
    clean()
    before = open("run.json").read()
    process = subprocess.run(
        command_line(["multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", "run.json"], ranks=2),
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(ENVIRONMENT, LD_PRELOAD=os.environ["TSR_FAILING_READ"], TSR_NO_STREAMS="1"),
    )
    assert process.returncode == 1 and "no memory for the log" in process.stderr, process
    assert open("run.json").read() == before and not os.path.exists("c.h5") and not leftovers(), os.listdir(".")


def test_special_files():
    """A pipe gets one object, at the end."""
    clean()
    for code, b in ((0, "b.h5"), (1, "absent.h5")):
        found = json.loads(
            run("multiply", "a.h5", b, "-o", "c.h5", "--force", "--quiet", "--log", "/dev/stdout", code=code).out
        )
        assert found["exit_code"] == code and found["format"] == FORMAT, found
    assert (
        json.loads(
            run("generate", "-o", "g.h5", "--shape", "3x4", "--log", "/dev/stdout").out.partition("}\n")[0] + "}"
        )["rows"]
        == 3
    )


def test_other_names():
    """Of a file with several names this one is replaced: said once, and in the record."""
    clean()
    product = ["multiply", "a.h5", "b.h5"]
    for ranks, what in ((0, product), (2, product), (2, ["generate", "--shape", "3x4"])):
        write("c.h5", np.full((3, 3), 5.0))
        os.link("c.h5", "other.h5")
        result = run(*what, "-o", "c.h5", "--force", "--log", "run.json", ranks=ranks)
        assert result.err.count("warning: 'c.h5' is one of 2 names of a file") == 1, result
        assert what[0] == "generate" or "one of 2 names" in log()["warnings"], log()
        assert np.all(read("other.h5") == 5) and read("c.h5").shape == ((30, 20) if what[0] == "multiply" else (3, 4))
        os.remove("c.h5"), os.remove("other.h5")


def test_pipes():
    """A pipe with a name: whoever reads it gets the log; nobody is waited for once C is in place, or not for long."""
    clean()
    os.mkfifo("pipe")
    two = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--quiet"]
    for options, before in ((["--log", "pipe"], True), (["--log", "pipe"], False), (["--trace", "pipe"], True)):
        if not before:
            process = subprocess.Popen(command_line([*two, *options]), stderr=subprocess.PIPE, env=ENVIRONMENT)
            time.sleep(1)  # C is in place long before
        reader = subprocess.Popen(["cat", "pipe"], stdout=subprocess.PIPE)
        time.sleep(0.2)
        if before:
            run(*two, *options)
        else:
            assert process.wait(timeout=30) == 0, process.stderr.read()
        found = json.loads(reader.communicate(timeout=30)[0])
        assert found.get("status", "done") == "done" and ("traceEvents" in found) == (options[0] == "--trace"), found
    write("long.h5", np.ones((30, 600), "f4"))
    os.mkfifo("stuck")
    many = ["multiply", "long.h5", "long.h5", "--transpose-b", "--force", "--panel", "1", "-o"]
    stuck = subprocess.Popen(["bash", "-c", "exec 3< stuck; exec sleep 60"])  # opens it, and reads nothing
    waits = subprocess.Popen(command_line([*many, "d.h5", "--trace", "stuck"]), stderr=subprocess.PIPE, text=True,
                             env=ENVIRONMENT)
    os.remove("c.h5")
    result = run(*two, "--log", "pipe", timeout=30)  # ends, with C in place
    says = "warning: C is in place, but its log was not written: cannot write the log 'pipe': nobody read this pipe"
    assert result.err.count(says) == 1 and np.all(read("c.h5") == 40), result
    err = waits.communicate(timeout=30)[1]
    stuck.kill(), stuck.wait()
    assert waits.returncode == 1 and "in place, but cannot write the trace 'stuck': nobody read" in err, err
    assert np.all(read("d.h5") == 600)
    reader = subprocess.Popen(["head", "-c", "1", "pipe"], stdout=subprocess.DEVNULL)  # leaves before the end
    fails(*many, "c.h5", "--trace", "pipe", code=1, says=["trace", "pipe"])
    assert reader.wait() == 0 and np.all(read("c.h5") == 600)
    assert not leftovers(), os.listdir(".")


def test_generate():
    clean()
    for ranks in (0, 2):
        run("generate", "-o", "g.h5:/A", "--shape", "30x40", "--force", "--seed", 3, "--log", "run.json", ranks=ranks)
        found = log()
        assert (
            found["status"] == "done"
            and found["rows"] == 30
            and found["seed"] == 3
            and found["path"] == "/A"
            and found["progress"] == 1
        ), found
        shown = run("info", "run.json").out
        assert "distribution            uniform" in shown and "product" not in shown, shown
        fails("report", "run.json", code=1, says="only a run that made C has one")
        for args, code, says in (
            (("--shape", "30x40"), 1, "--force"),
            (("--shape", "x"), 2, "--shape"),
            ((), 2, "--shape"),
        ):
            fails("generate", "-o", "g.h5:/A", *args, "--log", "run.json", code=code, says=says, ranks=ranks)
            found = log()
            assert (
                found["status"] == "failed"
                and found["exit_code"] == code
                and says in found["message"]
                and "rows" not in found
            ), found
    process = subprocess.Popen(
        command_line(
            [
                "generate",
                "-o",
                "g.h5",
                "--force",
                "--shape",
                "40000x40000",
                "--distribution",
                "normal",
                "--log",
                "run.json",
            ]
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    while process.poll() is None and not [name for name in os.listdir(".") if ".g.h5.tessera" in name]:
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 75 and log()["status"] == "stopped" and "SIGINT" in log()["message"], log()
    assert not leftovers(), os.listdir(".")


main(globals())
