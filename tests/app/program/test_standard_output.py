"""'-' for a file of text: standard output holds that text and nothing else, whatever it leads to; what people read goes
to standard error."""

import json
import os
import subprocess

from lib import ENVIRONMENT, command_line, fails, integers, leftovers, main, own_lines, run, write

MACHINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../jobs/h200_example.machine")


def make_inputs():
    write("a.h5", integers(30, 40)), write("b.h5", integers(40, 20))


def test_each():
    make_inputs()
    product = ["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--device", "cpu"]
    gemm = ["bench", "gemm", "--shape", "16", "--device", "cpu", "--repeat", "1", "--kernel", "blas"]
    whole = ["bench", "multiply", "--shape", "16", "--device", "cpu", "--repeat", "1"]
    cases = [
        (product + ["--log", "-"], "gflops", "bottleneck"),
        (product + ["--trace", "-"], "traceEvents", "bottleneck"),
        (["generate", "-o", "g.h5", "--force", "--shape", "5,6", "--log", "-"], "distribution", "5 x 6 uniform"),
        (["plan", "--shape", "100", "--ranks", "2", "--machine", MACHINE, "--json", "-"], "bounded_by", "predicted"),
        (gemm + ["--json", "-"], "kernels", "flop/byte"),
        (whole + ["-o", "-"], "seconds", "GFLOP/s"),
        (whole + ["--trace", "-"], "traceEvents", "GFLOP/s"),
    ]
    for command, member, words in cases:
        result = run(*command)
        assert member in json.loads(result.out), f"{member}: {result}"
        assert words in result.err and words not in result.out, f"{words}: {result}"
    assert json.loads(run(*product, "--log", "-", ranks=2).out)["rank_count"] == 2
    assert not os.path.exists("-") and not leftovers(), os.listdir(".")


def test_where_it_leads():
    """A file that the shell made, one that it adds to, and one that cannot be written."""
    make_inputs()
    command = command_line(["multiply", "a.h5", "b.h5", "-o", "c.h5", "--force", "--quiet", "--log", "-"])
    for mode, lines in (("w", 1), ("a", 2)):
        with open("out.json", mode) as file:
            subprocess.run(command, stdout=file, env=ENVIRONMENT, timeout=60, check=True)
        with open("out.json") as file:
            text = file.read()
        assert text.count('"rank_count"') == lines and text.startswith("{") and text.endswith("}\n"), text
    with open("/dev/full", "w") as full:
        process = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, timeout=60)
    assert process.returncode == 1 and len(own_lines(process.stderr)) == 1, process
    assert "error: C is in place, but standard output could not be written" in process.stderr, process
    process = subprocess.run(
        f"{' '.join(command[:-1])} /dev/fd/7 7>seven.json", shell=True, env=ENVIRONMENT, timeout=60
    )
    with open("seven.json") as file:
        assert process.returncode == 0 and "rank_count" in json.load(file)


def test_closed():
    """No file that is opened later takes the place of standard output."""
    make_inputs()
    command = " ".join(command_line(["generate", "-o", "g.h5", "--force", "--shape", "4,4"]))
    for closed, options, says in ((">&-", "", "in place, but standard output could not be written"),
                                  (">&-", " --log -", "standard output cannot be written: it is closed"),
                                  (">&- <&-", " --log /dev/stdout", "in place, but standard output could not be")):
        process = subprocess.run(command + options + closed, shell=True, stderr=subprocess.PIPE, text=True,
                                 env=ENVIRONMENT, timeout=60)
        assert process.returncode == 1 and says in process.stderr and "/dev/fd" not in process.stderr, process
        assert len(own_lines(process.stderr)) == 1, process
    process = subprocess.run(command + " --quiet 2>&-", shell=True, env=ENVIRONMENT, timeout=60)
    assert process.returncode == 0 and not leftovers(), process


def test_refused():
    make_inputs()
    fails("multiply", "a.h5", "b.h5", "-o", "c.h5", "--log", "-", "--trace", "-", code=2, says="--trace -")
    fails("bench", "multiply", "--trace", "-", "-o", "-", code=2, says="only one of them")
    fails("multiply", "a.h5", "b.h5", "-o", "-", code=2, says="name a file")
    fails("multiply", "-", "b.h5", "-o", "c.h5", code=2, says="name a file")
    fails("info", "-", code=2, says="name a file")
    result = fails("multiply", "a.h5", "a.h5", "-o", "d.h5", "--log", "-", code=1, says="30 x 40")
    assert "bottleneck" not in result.out and not os.path.exists("-"), result


main(globals())
