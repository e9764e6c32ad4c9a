"""The pages: nine of ten sentences have at most 20 words, lines of prose at most 120 columns, links lead somewhere,
what is named exists, and the drawing of the rooms is that of the folders.

Usage: test_pages.py [--show]    --show prints the figures of every page and its longest sentences.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
MOST_WORDS, MOST_COLUMNS = 20, 120
SYSTEM_HEADERS = {"mpi.h", "hdf5.h", "cuda.h", "nccl.h"}
SOURCES = ("kernels", "io", "mpi", "app", "tests", "jobs", "cmake", "docs")


def prose(text):
    """Lines of prose: without code blocks, tables and what scripts wrote between markers."""
    text = re.sub(r"^<!-- begin (\S+) -->$.*?^<!-- end \1 -->$", "", text, flags=re.M | re.S)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    return [line for line in text.splitlines() if not line.startswith("|")]


def blocks(lines):
    """Paragraphs and items of lists, a string each; headings are none."""
    found = [[]]
    for line in lines:
        if not line.strip() or line.startswith("#"):
            found.append([])
        elif re.match(r"\s*([-*]|\d+\.) ", line):
            found.append([re.sub(r"^\s*([-*]|\d+\.) ", "", line)])
        else:
            found[-1].append(line.strip())
    return [" ".join(block) for block in found if block]


def sentences(text):
    """Numbers of words, with the sentences. A link is its text, and a piece of code is one word."""
    found = []
    for block in blocks(prose(text)):
        block = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", block)
        block = re.sub(r"`[^`]+`", "CODE", block)
        for sentence in re.split(r"(?<=[.!?])[\"”)*]*\s+(?=[A-Z0-9*(\"“])", block):
            words = [word for word in sentence.split() if re.search(r"\w", word)]
            if words:
                found.append((len(words), sentence))
    return found


def ninth_decile(counts):
    counts = sorted(counts)
    return counts[max(0, -(-9 * len(counts) // 10) - 1)] if counts else 0


def anchors(text):
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def bad_links(page, text):
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if re.match(r"\w+:", target):
            continue
        there = (page.parent / name).resolve() if name else page
        if not there.exists():
            yield f"{page}: no file '{name}'"
        elif anchor and anchor not in anchors(there.read_text()):
            yield f"{page}: no heading for '{target}'"


def source_words():
    """Every tsr_ identifier of the sources; the paths of files and folders, and files' names alone."""
    paths = [path for folder in SOURCES for path in (ROOT / folder).rglob("*")]
    words = set()
    for path in paths:
        if path.is_file() and path.relative_to(ROOT).parts[0] in SOURCES[:4]:
            words |= set(re.findall(r"\btsr_\w+", path.read_text(errors="replace")))
    return words, {str(path.relative_to(ROOT)) for path in paths} | {path.name for path in paths} | set(SOURCES)


def bad_names(page, text, words, there):
    """NAME stands for what a reader puts there; a name that ends with _ for all that begin so."""
    for code in re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)):
        if "NAME" in code:
            continue
        for name in re.findall(r"\btsr_\w+", code):
            if name.endswith("_") and any(word.startswith(name) for word in words):
                continue
            if name not in words and not name.startswith(("tsr_kernels", "tsr_io", "tsr_mpi")):
                yield f"{page}: no '{name}' in the sources"
        path = re.match(rf"(?:(?:{'|'.join(SOURCES)})/[\w./]+|[a-z]\w+\.(?:c|h|cu|cc|py|sh|inc))(?=$|[ ,])", code)
        if path and "*" not in code and path[0].rstrip("/") not in there | SYSTEM_HEADERS:
            yield f"{page}: no file '{path[0]}'"


def bad_rooms(text, folders):
    """The drawing of the rooms has every folder of the sources, below its own, and no other."""
    drawn, outer = set(), ""
    for line in text.partition("## The rooms")[2].partition("```")[2].partition("```")[0].splitlines():
        top, room = re.match(r"(\w+)/ ", line), re.match(r"[ │]+(\w+/ .*)$", line)
        outer = top[1] if top else outer
        if outer not in SOURCES[:4]:
            continue
        names = re.findall(r"(\w+)/", room[1]) if room else []
        drawn |= {outer, *(f"{outer}/{name}" for name in names[:1])}
        drawn |= {f"{outer}/{names[0]}/{name}" for name in names[1:]}
    yield from (f"architecture.md: the drawing has no '{name}'" for name in sorted(folders - drawn))
    yield from (f"architecture.md: no folder '{name}'" for name in sorted(drawn - folders))


def problems(page, text):
    long = [line for line in prose(text) if len(line) > MOST_COLUMNS and not line.startswith("![")]
    found = [f"{page}: {len(line)} columns: {line[:60]}..." for line in long]
    counts = [count for count, _ in sentences(text)]
    if ninth_decile(counts) > MOST_WORDS:
        found.append(
            f"{page}: nine of ten sentences have at most {ninth_decile(counts)} words; {MOST_WORDS} are allowed "
                     "(test_pages.py --show)")
    return found + list(bad_links(page, text))


def check_the_check(words, there):
    """Each rule finds what breaks it."""
    long = " ".join(["word"] * 21) + "."
    here = ROOT / "README.md"
    text = "One two. Three `a b c` five [six seven](x.md)!\n\n- Item of four words\n"
    assert [count for count, _ in sentences(text)] == [2, 5, 4]
    assert sentences(f"```\n{long}\n```\n| {long} |\n<!-- begin a -->\n{long}\n<!-- end a -->\n") == []
    assert problems(here, "Short. " * 9 + "\n") == []
    assert len(problems(here, "Short.\n\n" * 8 + f"{long}\n\n{long}\n")) == 1
    assert len(problems(here, "a" * 121)) == 1 and problems(here, "| " + "a" * 121) == []
    assert len(problems(here, "[a](docs/no.md) [b](#no-such) [c](README.md#tessera) [d](https://e.f)\n")) == 2
    text = "`tsr_no_such` `mpi/no.c` `no_such.c` `tsr_view` `mpi/plan/plan.h` `io/NAME.c` `tsr_plan_`"
    assert len(list(bad_names(here, text, words, there))) == 3
    assert ninth_decile(range(1, 11)) == 9
    drawing = "## The rooms\n```\nmpi/   ranks\n │       plan/   a; old/\njobs/   scripts\n```\n"
    assert list(bad_rooms(drawing, {"mpi", "mpi/plan", "mpi/plan/old"})) == []
    assert len(list(bad_rooms(drawing, {"mpi", "mpi/plan", "io"}))) == 2


def main():
    words, there = source_words()
    check_the_check(words, there)
    paths = [path for name in SOURCES[:4] for path in [ROOT / name, *(ROOT / name).rglob("*")]]
    folders = {str(path.relative_to(ROOT)) for path in paths if path.is_dir()}
    found = [problem for page in ROOT.glob("*.md") for problem in bad_links(page, page.read_text())]
    found += bad_rooms((ROOT / "docs" / "architecture.md").read_text(), folders)
    for page in PAGES:
        text = page.read_text()
        here = problems(page, text) + list(bad_names(page, text, words, there))
        found += here
        if "--show" in sys.argv:
            counts = sentences(text)
            words_in_all, most = sum(count for count, _ in counts), ninth_decile([count for count, _ in counts])
            print(f"{page.relative_to(ROOT)}: {words_in_all} words of prose, {len(counts)} sentences, "
                  f"90 % have at most {most} words")
            for count, sentence in sorted(counts, reverse=True)[:12]:
                if count > MOST_WORDS:
                    print(f"    {count}: {sentence}")
    sys.exit("\n".join(found) if found else 0)


main()
