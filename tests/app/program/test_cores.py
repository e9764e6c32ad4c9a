"""The cores and threads of ranks, on two cores: what mpirun does by itself gives way, what was asked for stays; options
and variables bound threads."""
import json
import os
import pathlib
import subprocess
import sys

from lib import ENVIRONMENT, MPIRUN, PLAIN, TESSERA, fails, integers, leftovers, main, read, run, two_cores, write

SAMPLE = str(pathlib.Path(__file__).resolve().parents[3] / "jobs" / "h200_example.machine")


CORES = two_cores()
SQUARE = ["multiply", "a.h5", "a.h5", "--device", "cpu"]


def start(launcher, *command, **more):
    """On two cores, with mpirun as a user types it; what it printed."""
    process = subprocess.run([*launcher, *command], capture_output=True, text=True, timeout=60, env=dict(PLAIN, **more),
                             preexec_fn=lambda: os.sched_setaffinity(0, CORES))
    assert process.returncode == 0, process
    return process.stdout


def shown(launcher, **more):
    """Of each rank the cores it may run on, its share of them and its threads, as info shows them."""
    found = []
    for line in start(launcher, TESSERA, "info", "--devices", "--device", "cpu", **more).splitlines():
        if line.startswith("rank "):
            allowed, own = line.split(" cores, memory")[0].split()[-1], line.split(" of this rank ")[1].split()
            found.append((int(allowed), *[int(word) for word in own if word.isdigit()]))
    return found


def recorded(launcher, *options, **more):
    """Of each rank its share of the cores, its threads and those for files, as the record of a run has them."""
    start(launcher, TESSERA, *SQUARE, "-o", "c.h5", "--force", "--log", "log.json", *options, **more)
    with open("log.json") as file:
        return [(rank["cores"], rank["threads"], rank["io_threads"]) for rank in json.load(file)["ranks"]]


def expect(launcher, info, record, *options, **more):
    found = shown(launcher, **more), recorded(launcher, *options, **more)
    assert found == (info, record), (launcher, options, more, found)


def mpirun(*options):
    return [MPIRUN, *options]


def test_default_gives_way():
    """Alone on two cores a rank uses both, two share them; a script between mpirun and the program changes nothing."""
    bound = start(mpirun("-n", "1"), "python3", "-c", "import os; print(len(os.sched_getaffinity(0)))")
    assert bound == "1\n", f"mpirun by itself leaves a rank {bound}"
    expect(mpirun("-n", "1"), [(2, 2, 2)], [(2, 2, 1)])
    expect(mpirun("-n", "1", "sh", "-c", '"$@"; true', "sh"), [(2, 2, 2)], [(2, 2, 1)])
    expect(mpirun("-n", "2"), [(2, 1, 1)] * 2, [(1, 1, 1)] * 2)


def test_asked_for_stays():
    taskset = ["taskset", "-c", str(CORES[1])]
    for launcher in (mpirun("--bind-to", "core", "-n", "1"), mpirun("--map-by", "slot:PE=1", "-n", "1"),
                     mpirun("--cpu-list", str(CORES[1]), "-n", "1"), taskset, [*taskset, *mpirun("-n", "1")]):
        expect(launcher, [(1, 1, 1)], [(1, 1, 1)])
    expect(mpirun("-n", "1"), [(1, 1, 1)], [(1, 1, 1)], OMPI_MCA_hwloc_base_binding_policy="core")
    expect(mpirun("--bind-to", "none", "-n", "1"), [(2, 2, 2)], [(2, 2, 1)])
    expect(mpirun("--bind-to", "none", "-n", "2"), [(2, 1, 1)] * 2, [(1, 1, 1)] * 2)
    expect(mpirun("--oversubscribe", "-n", "3"), [(2, 1, 1)] * 3, [(1, 1, 1)] * 3)
    expect([], [(2, 2, 2)], [(2, 2, 1)])


def test_wrappers():
    """What a script between mpirun and the program binds stays: of another set of cores than its own, or than Open MPI
    makes by itself."""
    taskset = f'taskset -c {CORES[1]} "$@"'
    expect(mpirun("-n", "1", "sh", "-c", taskset + "; exit $?", "sh"), [(1, 1, 1)], [(1, 1, 1)])
    unbound = mpirun("--bind-to", "none", "-n", "1", "sh", "-c", "exec " + taskset, "sh")
    expect(unbound, [(1, 1, 1)], [(1, 1, 1)])
    three = mpirun("--oversubscribe", "-n", "3", "sh", "-c", "exec " + taskset, "sh")
    expect(three, [(1, 1, 1)] * 3, [(1, 1, 1)] * 3)


def test_fewer_threads():
    one = mpirun("-n", "1")
    expect(one, [(2, 2, 1)], [(2, 1, 1)], OPENBLAS_NUM_THREADS="1")
    expect(one, [(2, 2, 1)], [(2, 1, 1)], OMP_NUM_THREADS="1")
    assert recorded(one, "--threads", "1") == [(2, 1, 1)]
    assert recorded(one, "--threads", "7", "--io-threads", "3") == [(2, 2, 3)]
    assert recorded(one, "--threads", "2", "--io-threads", "3", "--verify") == [(2, 2, 2)]
    for wrong in ("0", "-1", "two", "4097"):
        fails(*SQUARE, "-o", "c.h5", "--threads", wrong, code=2, says=["--threads", wrong])


def test_memory():
    """A limit that the machine or the job has not for each rank is refused; a job's memory bounds what is free."""
    output, job = ["-o", "d.h5"], {"SLURM_MEM_PER_NODE": "100"}
    for option in ("--host-memory", "--memory"):
        says = [f"{option} 1099511627776000: need 1.10 PB, have ", f"use {option} "]
        fails(*SQUARE, *output, option, "1000T", code=1, says=says)
    says = ["62914560 for each of 2 ranks", "need 125.83 MB, have 104.86 MB", "SLURM_MEM_PER_NODE",
            "--host-memory 52428800 or less"]
    fails(*SQUARE, *output, "--host-memory", "60M", ranks=2, code=1, environment=job, says=says)
    run(*SQUARE, *output, "--host-memory", "50M", "--dry-run", ranks=2, environment=job)
    for same in (job, {"SLURM_MEM_PER_CPU": "50", "SLURM_CPUS_ON_NODE": "2"}):
        assert "memory 104.86 MB" in run("info", "--devices", "--device", "cpu", environment=same).out
    assert "83.89 MB" in run(*SQUARE, *output, "--dry-run", environment=job).out  # 80 %
    assert not os.path.exists("d.h5") and not leftovers(), os.listdir(".")


def started_by(variables, *arguments, code):
    """Without a launcher, but with its variables; what it said."""
    environment = dict(PLAIN, **variables)
    process = subprocess.run([TESSERA, *arguments], capture_output=True, text=True, timeout=60, env=environment)
    assert process.returncode == code, process
    return process.stderr


def test_many_alone():
    """Processes that nobody launched do not meet: Open MPI's folder for them would be one and the same."""
    environment = {name: value for name, value in ENVIRONMENT.items() if not name.startswith("OMPI_MCA")}
    for _ in range(8):
        together = [
            subprocess.Popen(
                [TESSERA, "info", "--devices", "--device", "cpu"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
            for _ in range(8)
        ]
        for process in together:
            text, _ = process.communicate(timeout=60)
            assert process.returncode == 0 and "rank 0 on" in text, text


def test_another_launcher():
    """Each of three ranks that another MPI started would take itself for the only one: none writes, one speaks."""
    first, last = {"PMI_SIZE": "3", "PMI_RANK": "0"}, {"PMI_SIZE": "3", "PMI_RANK": "2"}
    writing = [*SQUARE, "-o", "e.h5", "--force"]
    for arguments in (writing, ["generate", "-o", "e.h5", "--shape", "3x3"], ["verify", "a.h5", "a.h5", "a.h5"],
                      ["compare", "a.h5", "a.h5"], ["bench", "gemm"]):
        said = started_by(first, *arguments, code=2)
        assert said.count("tessera: error: ") == 1, said
        for part in ("MPICH", "started 3 ranks", "Open MPI", "found 1", "mpirun"):
            assert part in said, said
        assert started_by(last, *arguments, code=2) == ""
    said = started_by({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}, *writing, code=2)
    assert "Open MPI's mpirun started 4 ranks" in said, said
    assert not os.path.exists("e.h5") and not leftovers(), os.listdir(".")
    plan = ["plan", "--shape", "1000", "--ranks", "2", "--machine", SAMPLE]
    for arguments in (["info", "--devices"], ["info", "a.h5", "--devices"], [*plan, "--json", "plan.json"]):
        assert "started 3 ranks" in started_by(first, *arguments, code=2), arguments
        assert started_by(last, *arguments, code=2) == "", arguments
    assert not os.path.exists("plan.json")
    for arguments in (["info", "a.h5"], plan, [*plan, "--json", "-"], ["plan", "--help"]):
        started_by(first, *arguments, code=0)
    assert "missing.h5" in started_by(first, "info", "missing.h5", code=1)
    assert started_by(last, "info", "missing.h5", code=1) == ""
    started_by({"PMI_SIZE": "1", "PMI_RANK": "0"}, *writing, code=0)
    os.remove("e.h5")


def test_srun():
    """A task of srun's is refused; in a shell of a step, as srun --pty gives one, the program stands alone."""
    os.symlink(os.path.realpath("/bin/sh"), "slurmstepd")
    step = dict(PLAIN, SLURM_STEP_NUM_TASKS="2", SLURM_PROCID="0")
    for shell, code in (("./slurmstepd", 2), ("/bin/sh", 0)):
        command = [shell, "-c", '"$@"; exit $?', "sh", TESSERA, *SQUARE, "-o", "e.h5"]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60, env=step)
        assert process.returncode == code and ("srun started 2 ranks" in process.stderr) == (code == 2), process
        assert os.path.exists("e.h5") == (code == 0), process
    assert read("e.h5").shape == (40, 40)


if not CORES:
    print("this machine has one core: skipped")
    sys.exit(77)
write("a.h5", integers(40, 40), "A")
main(globals())
