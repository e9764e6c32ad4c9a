"""The cores and threads of ranks: what mpirun does by itself gives way, what was asked for stays; options and variables bound threads. On two cores."""
import json
import os
import subprocess
import sys

from lib import ENVIRONMENT, MPIRUN, TESSERA, fails, integers, leftovers, main, read, run, write


def two_cores():
    """Two of this process's cores that are not two threads of one; None where there are not two."""
    mine = sorted(os.sched_getaffinity(0))
    siblings = {}
    for core in mine:
        with open(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list") as file:
            siblings.setdefault(file.read(), core)
    return sorted(siblings.values())[:2] if len(siblings) >= 2 else None


CORES = two_cores()
PLAIN = {name: value for name, value in ENVIRONMENT.items() if name not in ("OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_oversubscribe",
                                                                             "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}


def start(launcher, command, **more):
    """On two cores, with mpirun as a user types it; what it printed."""
    process = subprocess.run([*launcher, *command], capture_output=True, text=True, timeout=60, env=dict(PLAIN, **more),
                             preexec_fn=lambda: os.sched_setaffinity(0, CORES))
    assert process.returncode == 0, process
    return process.stdout


def ranks(launcher, *options, **more):
    """For each rank: cores it may run on, its share of them, and threads, as info says, and as the record of a run does."""
    lines = [line for line in start(launcher, [TESSERA, "info", "--devices", "--device", "cpu"], **more).splitlines() if line.startswith("rank ")]
    shown = [(int(line.split(" cores, memory")[0].split()[-1]), *[int(word) for word in line.split(" of this rank ")[1].split() if word.isdigit()]) for line in lines]
    start(launcher, [TESSERA, "multiply", "a.h5", "a.h5", "-o", "c.h5", "--force", "--device", "cpu", "--log", "log.json", *options], **more)
    with open("log.json") as file:
        record = json.load(file)["ranks"]
    return shown, [(rank["cores"], rank["threads"], rank["io_threads"]) for rank in record]


def mpirun(*options):
    return [MPIRUN, *options]


def test_default_gives_way():
    """Alone on two cores a rank uses both, two share them; a script between mpirun and the program changes nothing."""
    assert len(start(mpirun("-n", "1"), ["sh", "-c", "taskset -pc $$"]).split(":")[1].split(",")) == 1, "mpirun does not bind by itself here: nothing to give way"
    for launcher in (mpirun("-n", "1"), mpirun("-n", "1", "sh", "-c", '"$@"; true', "sh")):
        assert ranks(launcher) == ([(2, 2, 2)], [(2, 2, 1)]), ranks(launcher)
    assert ranks(mpirun("-n", "2")) == ([(2, 1, 1)] * 2, [(1, 1, 1)] * 2), ranks(mpirun("-n", "2"))


def test_asked_for_stays():
    for launcher in (mpirun("--bind-to", "core", "-n", "1"), mpirun("--map-by", "slot:PE=1", "-n", "1"), mpirun("--cpu-list", str(CORES[0]), "-n", "1"),
                     ["taskset", "-c", str(CORES[1])], ["taskset", "-c", str(CORES[1]), *mpirun("-n", "1")]):
        assert ranks(launcher) == ([(1, 1, 1)], [(1, 1, 1)]), (launcher, ranks(launcher))
    assert ranks(mpirun("-n", "1"), OMPI_MCA_hwloc_base_binding_policy="core")[0] == [(1, 1, 1)]
    assert ranks(mpirun("--bind-to", "none", "-n", "1")) == ([(2, 2, 2)], [(2, 2, 1)])
    assert ranks(mpirun("--bind-to", "none", "-n", "2")) == ([(2, 1, 1)] * 2, [(1, 1, 1)] * 2)
    assert ranks(mpirun("--bind-to", "none", "--oversubscribe", "-n", "3"))[0] == [(2, 1, 1)] * 3
    assert ranks([]) == ([(2, 2, 2)], [(2, 2, 1)])


def test_fewer_threads():
    one = mpirun("-n", "1")
    assert ranks(one, OPENBLAS_NUM_THREADS="1") == ([(2, 2, 1)], [(2, 1, 1)])
    assert ranks(one, OMP_NUM_THREADS="1") == ([(2, 2, 1)], [(2, 1, 1)])
    assert ranks(one, "--threads", "1")[1] == [(2, 1, 1)]
    assert ranks(one, "--threads", "7", "--io-threads", "3")[1] == [(2, 2, 3)]
    assert ranks(one, "--threads", "2", "--io-threads", "3", "--verify")[1] == [(2, 2, 2)]
    for wrong in ("0", "-1", "two", "4097"):
        fails("multiply", "a.h5", "a.h5", "-o", "c.h5", "--threads", wrong, code=2, says=["--threads", wrong])


def test_memory():
    """A limit that the machine or the job has not for each rank is refused; what a job has bounds what is taken for free."""
    everything = ["multiply", "a.h5", "a.h5", "-o", "d.h5", "--device", "cpu"]
    for option in ("--host-memory", "--memory"):
        fails(*everything, option, "1000T", code=1, says=[f"{option} 1099511627776000: need 1.10 PB, have ", f"use {option} "])
    node = {"SLURM_MEM_PER_NODE": "100"}
    fails(*everything, "--host-memory", "60M", ranks=2, code=1, environment=node, 
          says=["62914560 for each of 2 ranks", "need 125.83 MB, have 104.86 MB", "SLURM_MEM_PER_NODE", "--host-memory 52428800 or less"])
    run(*everything, "--host-memory", "50M", "--dry-run", ranks=2, environment=node)
    for job in (node, {"SLURM_MEM_PER_CPU": "50", "SLURM_CPUS_ON_NODE": "2"}):
        assert "memory 104.86 MB" in run("info", "--devices", "--device", "cpu", environment=job).out
    assert "83.89 MB" in run(*everything, "--dry-run", environment=node).out  # 80 %
    assert not os.path.exists("d.h5") and not leftovers(), os.listdir(".")


def started_by(variables, *arguments, code):
    """Without a launcher, but with its variables."""
    process = subprocess.run([TESSERA, *arguments], capture_output=True, text=True, timeout=60, env=dict(PLAIN, **variables))
    assert process.returncode == code, process
    return process.stderr


def test_another_launcher():
    """Each of three ranks that another MPI started would take itself for the only one: none writes, one speaks."""
    writing = ["multiply", "a.h5", "a.h5", "-o", "e.h5", "--force"]
    for arguments in (writing, ["generate", "-o", "e.h5", "--shape", "3x3"], ["verify", "a.h5", "a.h5", "a.h5"], ["compare", "a.h5", "a.h5"], ["bench", "gemm"]):
        said = started_by({"PMI_SIZE": "3", "PMI_RANK": "0"}, *arguments, code=2)
        assert said.count("tessera: error: ") == 1 and "started 3 ranks" in said and "MPICH" in said and "Open MPI" in said and "mpirun" in said, said
    assert started_by({"PMI_SIZE": "3", "PMI_RANK": "2"}, *writing, code=0) == ""
    assert "OMPI_COMM_WORLD_SIZE" in started_by({"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}, *writing, code=2)
    assert not os.path.exists("e.h5") and not leftovers(), os.listdir(".")
    for arguments in (["info", "a.h5"], ["plan", "--help"]):
        started_by({"PMI_SIZE": "3", "PMI_RANK": "0"}, *arguments, code=0)
    started_by({"PMI_SIZE": "1", "PMI_RANK": "0"}, *writing, code=0)
    os.remove("e.h5")


def test_srun():
    """A task of srun's is refused, its interactive shell is not: there the parent is a shell."""
    step = {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}
    os.symlink(os.path.realpath("/bin/sh"), "slurmstepd")
    for shell, code in (("./slurmstepd", 2), ("/bin/sh", 0)):
        process = subprocess.run([shell, "-c", '"$@"; exit $?', "sh", TESSERA, "multiply", "a.h5", "a.h5", "-o", "e.h5"], capture_output=True, text=True, timeout=60,
                                 env=dict(PLAIN, **step))
        assert process.returncode == code and ("srun started 2 ranks" in process.stderr) == (code == 2) and os.path.exists("e.h5") == (code == 0), process
    assert read("e.h5").shape == (40, 40)


if not CORES:
    print("this machine has one core: skipped")
    sys.exit(77)
write("a.h5", integers(40, 40), "A")
main(globals())
