"""A GPU whose own readings speak against it is a warning, and with --healthy an error that names GPU and host. The GPU
is an emulated one, and its readings are those of a libnvidia-ml of the test (fake_nvml.c)."""
import json
import os
import socket

from lib import ENVIRONMENT, fails, integers, leftovers, main, np, read, run, write

GOOD = "pending=0,failed=0,ecc=0,clocks=1"
GPU = "emulated CUDA device (0000:00:00.0)"
HOST = socket.gethostname().split(".")[0]


def fake(readings):
    folders = os.environ["TSR_FAKE_NVML"] + ":" + ENVIRONMENT.get("LD_LIBRARY_PATH", "")
    return {"LD_LIBRARY_PATH": folders, "FAKE_NVML": readings}


def multiply(readings, *more, ranks=0, environment=None):
    result = run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cuda", "--kernel", "coarse", "--log",
                 "log.json", *more, ranks=ranks, environment=environment or fake(readings))
    with open("log.json") as file:
        return result, json.load(file)


def test_good():
    write("a.h5", integers(40, 30)), write("b.h5", integers(30, 50))
    for ranks in (0, 2):
        for more in ((), ("--healthy",)):
            result, record = multiply(GOOD, *more, ranks=ranks)
            said = "good: no uncorrected ECC errors, no row remap pending, not throttled"
            assert [rank["health"] for rank in record["ranks"]] == [said] * max(1, ranks), record["ranks"]
            assert f"GPU health  {said}" in result.out and "health" not in result.err + record["warnings"], result
    assert np.array_equal(read("c.h5"), read("a.h5").astype("f8") @ read("b.h5"))
    out = run("info", "c.h5").out
    assert f"GPU health  {said}" in out, out  # the file's record has it, too


def test_doubtful():
    for readings, says in (("pending=1,failed=0,ecc=0,clocks=0", "a row of memory waits to be remapped"),
                           ("pending=0,failed=1,ecc=0,clocks=0", "a row of memory could not be remapped"),
                           ("retirement=1", "a page of memory waits to be retired"),
                           ("pending=0,failed=0,ecc=3,clocks=0", "3 uncorrected ECC errors since the driver"),
                           ("pending=0,failed=0,ecc=0,clocks=0x40", "throttled (heat, by the hardware)")):
        result, record = multiply(readings)
        warning = f"the health of {GPU} on host {HOST} is doubtful: "
        assert warning in result.err and says in result.err and warning in record["warnings"], (result, record)
        assert says in record["ranks"][0]["health"], record["ranks"]
        assert "GPU health  doubtful: " in result.out, result
        os.remove("c.h5")
        failed = fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--device", "cuda", "--healthy", code=1,
                       says=[warning, says, "--healthy"], environment=fake(readings))
        assert leftovers() == [] and not os.path.exists("c.h5"), (failed, leftovers())
    result, _ = multiply("ecc=1", ranks=3)  # ranks that share a GPU warn of it once
    assert result.err.count("is doubtful") == 1, result
    assert "GPU health  doubtful" in result.out, result
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cuda", "--healthy", ranks=2, code=1,
          says="is doubtful", environment=fake("ecc=1"))


def test_unknown():
    """Where nothing can be read nothing is refused, and whoever asked is told."""
    nobody = "the health of " + GPU
    for readings, why in (("init=9", "nvmlInit: Driver Not Loaded"), ("handle=15", "GPU is lost"),
                          ("", "the driver says nothing of this GPU")):
        result, record = multiply(readings)
        assert nobody not in result.err and why in record["ranks"][0]["health"], (result, record)
        result, record = multiply(readings, "--healthy")
        assert nobody in result.err and "is not known: " in result.err and why in result.err, result
    result, record = multiply("", "--healthy", environment={"LD_LIBRARY_PATH": ENVIRONMENT.get("LD_LIBRARY_PATH", "")})
    assert "not known: " in record["ranks"][0]["health"], record


def test_cpu():
    """A CPU has no such readings."""
    result = run("multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu", "--healthy", "--log",
                 "log.json", environment=fake("ecc=1"))
    with open("log.json") as file:
        assert json.load(file)["ranks"][0]["health"] == "" and "GPU health" not in result.out + result.err, result


def test_info():
    out = run("info", "--devices", "--device", "cuda", "--json", "info.json", environment=fake("ecc=2")).out
    assert "health doubtful: 2 uncorrected ECC errors" in out, out
    with open("info.json") as file:
        assert json.load(file)["devices"][0]["health"].startswith("doubtful: 2 uncorrected"), out


if __name__ == "__main__":
    main(globals())
