"""What the tables of docs/measurements come to: section overview of docs/performance.md, section file-to-file of
README.md, and docs/pictures/file_to_file.svg.

Usage: overview.py
The scripts whose tables it reads call it. test_report.py fails where its output is older than these.
"""
import re

import draw
import report

README = report.ROOT / "README.md"
PAGE = report.ROOT / "docs" / "performance.md"
PICTURE = report.ROOT / "docs" / "pictures" / "file_to_file.svg"
TYPES = ["f32", "f64", "bf16", "f16"]
KERNEL_HEADER = ["type", "kernel", "best, of the vendor's speed", "least", "targets reached", "missed"]
FILES_HEADER = ["files to file", "Tessera s", "beside", "its s", "times as fast"]
# The first columns of gpu_engine.HEADER.
ENGINE = ["case", "what", "measured", "beside", "ratio", "target", "reached", "shape", "gpus", "kernel", "check", "gpu",
          "date", "commit"]


def numbers(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]


def tables(script, section):
    """The tables of a section: a list of rows each."""
    parts = report.section(report.page(script).read_text(), section).split("\n\n")
    return [report.rows(part) for part in parts if part.startswith("|")]


def engine_rows():
    return [dict(zip(ENGINE, row)) for row in tables("gpu_engine", "gpu-engine")[0]]


def engine(case, what):
    for row in engine_rows():
        if row["case"] == case and row["what"] == what:
            return row
    raise ValueError(f"gpu_engine.md has no row '{case}', '{what}'")


def beside_torch():
    """The rows of files beside h5py + torch: first read to last byte, and whole processes."""
    return [engine("files", f"beside h5py + torch, {what}") for what in ("first read to last byte", "whole processes")]


def ours(row):
    """Seconds of the best run."""
    return numbers(row["measured"])[0]


def theirs(row):
    """Seconds of h5py + torch."""
    return float(re.search(r"torch (\d+\.\d+)", row["beside"])[1])


def ratio(row):
    return float(row["ratio"].strip("*"))


def kernel_rows():
    """A row a type and kernel: the best and the least ratio beside the vendor's, and how many targets were reached."""
    groups = {}
    for row in tables("gpu_targets", "gpu-targets")[0]:
        case = float(row[5].strip("*")), row[2], row[7] == "yes"
        groups.setdefault((TYPES.index(row[1]), row[0]), []).append(case)
    rows = []
    for (kind, kernel), cases in sorted(groups.items()):
        best, least = max(cases), min(cases)
        missed = ", ".join(f"{shape}: {value:.2f}" for value, shape, reached in cases if not reached)
        rows.append([TYPES[kind], f"`{kernel}`", f"**{best[0]:.2f}** at {best[1]}", f"{least[0]:.2f} at {least[1]}",
                     f"{sum(reached for _, _, reached in cases)} of {len(cases)}", missed or "-"])
    return rows


def file_rows():
    """What was multiplied, seconds of Tessera and of what stands beside it, and their ratio as recorded."""
    rows = []

    def add(what, seconds, beside, peer, times):
        rows.append([what, f"{seconds:.2f}", beside, f"{peer:.2f}", f"**{times:.2f}**"])

    run, whole = beside_torch()
    said = f"{run['shape']} f32, {run['gpus']} {run['gpu']}, files in memory: first read to last byte"
    add(said, ours(run), "h5py + torch", theirs(run), ratio(run))
    add("the same, whole processes", ours(whole), "h5py + torch", theirs(whole), ratio(whole))
    disk = engine("disk", "beside plain O_DIRECT reads and writes")
    said = f"{disk['shape']} f32, {disk['gpus']} {disk['gpu']}, one disk, cold"
    add(said, ours(disk), "reading and writing the same bytes", sum(numbers(disk["beside"])[:2]), ratio(disk))
    cpu, blas = (float(row[1]) for row in tables("cpu_end_to_end", "cpu-end-to-end")[0])
    title = report.section(report.page("cpu_end_to_end").read_text(), "cpu-end-to-end").partition(", files")[0]
    add(f"{title.replace('fp32', 'f32')}, 2 CPU cores, whole processes", cpu, "OpenBLAS and h5py", blas, blas / cpu)
    return rows


def engine_line():
    rows = engine_rows()
    missed = [f"`{row['case']}`, {row['what']}: {ratio(row):.2f} ({row['target']})" for row in rows
              if row["reached"] != "yes"]
    reached = f"{len(rows) - len(missed)} of {len(rows)}"
    return f"Whole products: {reached} targets reached; missed: {'; '.join(missed) or 'none'}."


def text():
    both = report.table(KERNEL_HEADER, kernel_rows()), report.table(FILES_HEADER, file_rows())
    return "\n\n".join([*both, engine_line()])


def picture():
    run, whole = beside_torch()
    parts = re.findall(r"(read|multiply|write) (\d+\.\d+)", run["beside"])
    torch = [(name, float(seconds), i + 1) for i, (name, seconds) in enumerate(parts)]
    groups = [("First read to last byte", [("Tessera", [("", ours(run), 0)]), ("h5py + torch", torch)]),
              ("Whole processes", [("Tessera", [("", ours(whole), 0)]), ("h5py + torch", [("", theirs(whole), 4)])])]
    return draw.bars(f"C.h5 = A.h5 × B.h5, {run['shape']} f32, {run['gpus']} × {run['gpu']}",
                     "seconds (less is better)",
                     groups, "Best of the runs of tests/bench/gpu_engine.sh, files in memory-backed storage; "
                     f"{run['date']}, commit {run['commit']}.")


def sentence():
    """The picture in words."""
    run, whole = beside_torch()
    return (f"{run['gpus']} {run['gpu']} multiply {run['shape']} in f32 in {ours(run):.2f} s, from the first byte read "
            f"to the last one written.\nh5py + torch takes {theirs(run):.2f} s on the same GPUs. Whole processes take "
            f"{ours(whole):.2f} s beside {theirs(whole):.2f} s.")


def main():
    report.write_section("file-to-file", sentence(), README)
    report.write_section("overview", text(), PAGE)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture())
    print(f"drew {PICTURE}")


if __name__ == "__main__":
    main()
