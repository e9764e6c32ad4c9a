"""Writes measured tables into the pages of docs/measurements, each between its own two markers. Nothing there is typed
by hand. The page of a script is named like the script.

    <!-- begin NAME -->
    ...
    <!-- end NAME -->
"""
import datetime
import os
import pathlib
import platform
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command, **how):
    """What a command prints, with subprocess.run's options; a command that fails ends the script with all it said."""
    process = subprocess.run([str(word) for word in command], capture_output=True, text=True, **how)
    if process.returncode:
        sys.exit(f"{' '.join(process.args)} failed:\n{process.stdout}{process.stderr}")
    return process.stdout


def generate(program, file, shape, kind, seed, *more):
    """A file with a random matrix, by all cores: a rank each, 16 at most."""
    run(["mpirun", "--bind-to", "none", "-n", min(16, os.cpu_count() or 1), program, "generate", "-o", file, "--shape",
         shape, "--type", kind, "--seed", seed, "--quiet", *more])


def page(script):
    """The page of a script, by its path or name: docs/measurements/NAME.md."""
    return ROOT / "docs" / "measurements" / f"{pathlib.Path(script).stem}.md"


def replace_section(text, name, body):
    """text with what stands between NAME's markers replaced by body; ValueError when the markers are not there."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    head, found_begin, rest = text.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"no markers '{begin}' and '{end}'")
    return f"{head}{begin}\n{body.strip()}\n{end}{tail}"


def section(text, name):
    """What stands between NAME's markers."""
    return text.partition(f"<!-- begin {name} -->")[2].partition(f"<!-- end {name} -->")[0].strip()


def write_section(name, body, file):
    """A file that is not there yet has this section alone."""
    text = file.read_text() if file.exists() else f"<!-- begin {name} -->\n<!-- end {name} -->\n"
    file.write_text(replace_section(text, name, body))
    print(f"wrote section {name} of {file}")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def rows(text):
    """The rows of the first table in text, without its header."""
    cells = [[cell.strip() for cell in line.strip().strip("|").split("|")]
             for line in text.splitlines() if line.startswith("|")]
    return cells[2:]


def merge(old, new, keys):
    """old rows in their order, those with the same first `keys` cells replaced by new ones; new ones added; sorted by
    those cells."""
    new = {tuple(str(cell) for cell in row[:keys]): [str(cell) for cell in row] for row in new}
    merged = [new.pop(tuple(row[:keys]), row) for row in old]
    return sorted(merged + list(new.values()), key=lambda row: [(len(cell), cell) for cell in row[:keys]])


def commit():
    """The commit measured, with '+' when files differ from it; TSR_COMMIT names it where there is no repository."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True,
                              check=True).stdout.strip()

    if os.environ.get("TSR_COMMIT"):
        return os.environ["TSR_COMMIT"]
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "kernels", "io", "mpi", "app",
                      "CMakeLists.txt")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def today():
    return datetime.date.today().isoformat()


def cpu_name():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return names[0] if names else platform.processor()
