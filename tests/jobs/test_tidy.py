#!/usr/bin/env python3
"""What clang-tidy finds in the C sources of a build, with the checks of .clang-tidy. First planted mistakes are found.

Usage: test_tidy.py REPOSITORY BUILD [PART...]   only sources whose names hold a PART. Exit code 77: skipped."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

VERSION = "14"  # Debian 12's; another one has other checks
GOOD = """#include <stdlib.h>
int *good(int n);
int *good(int n) {
    int *p = malloc(sizeof *p);
    if (p) *p = n;
    return p;
}
"""
# How far the analyzer looks into one function: pack_cpu.c alone takes a minute with its default, 225000.
MOST = 60000 if os.environ.get("TSR_LONG") == "1" else 15000
NODES = [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={MOST}")]
NOT_TOLD = ("kernels/base/base.c", "mpi/ranks/world.c")  # that define what tidy.h makes macros of
BAD = {
    "clang-analyzer-core.NullDereference": GOOD.replace("if (p) *p = n", "if (!p) *p = n"),
    "clang-analyzer-unix.Malloc": GOOD.replace("return p", "return NULL"),
    "bugprone-suspicious-semicolon": GOOD.replace("if (p) *p = n", "if (n > 3);\n    if (p) *p = n"),
    "misc-redundant-expression": GOOD.replace("if (p)", "if (p && n == n)"),
}


def find_program():
    for name in (f"clang-tidy-{VERSION}", "clang-tidy"):
        program = shutil.which(name)
        if program and f"version {VERSION}." in subprocess.check_output([program, "--version"], text=True):
            return program
    print(f"skipped: no clang-tidy {VERSION}")
    sys.exit(77)


def findings(program, config, commands, scratch):
    """The lines with findings of all compile commands, each once."""
    with open(os.path.join(scratch, "compile_commands.json"), "w", encoding="utf-8") as file:
        json.dump(commands, file)

    def run(command):
        words = [program, "-p", scratch, f"--config-file={config}", "--quiet", *NODES, command["file"]]
        if not command["file"].endswith(NOT_TOLD) and not command["file"].startswith(scratch):
            words += ["--extra-arg=-D_GNU_SOURCE", "--extra-arg=-includetests/jobs/tidy.h"]
        ended = subprocess.run(words, capture_output=True, text=True)
        found = re.findall(r"^\S.*?:\d+:\d+: (?:warning|error): .*$", ended.stdout, re.M)
        if ended.returncode != 0 and not found:
            found = [f"{command['file']}: clang-tidy ended with {ended.returncode}: {ended.stderr.strip()}"]
        return found

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return sorted({line for found in pool.map(run, commands) for line in found})


def main():
    root, build = (os.path.realpath(path) for path in sys.argv[1:3])
    parts = sys.argv[3:]
    config = os.path.join(root, ".clang-tidy")
    program = find_program()
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {c["file"]: c for c in json.load(file) if c["file"].endswith(".c") and c["file"].startswith(root)}
    assert len(commands) > 100, f"only {len(commands)} C sources in {build}"
    chosen = [c for name, c in commands.items() if not parts or any(part in name for part in parts)]

    with tempfile.TemporaryDirectory() as scratch:
        planted = {"good": GOOD, **BAD}
        for name, text in planted.items():
            with open(os.path.join(scratch, name + ".c"), "w", encoding="utf-8") as file:
                file.write(text)
        files = [os.path.join(scratch, name + ".c") for name in planted]
        plant = [{"directory": scratch, "file": file, "command": f"cc -c {file}"} for file in files]
        found = findings(program, config, plant, scratch)
        for name in BAD:
            assert any(f"/{name}.c:" in line and name in line for line in found), f"{name} was not noticed: {found}"
        assert not any("/good.c:" in line for line in found), found
    with tempfile.TemporaryDirectory() as scratch:
        found = findings(program, config, chosen, scratch)
    for line in found:
        print(line.replace(root + os.sep, ""))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
