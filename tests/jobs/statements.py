#!/usr/bin/env python3
"""Statements of C, C++ and CUDA that say too much at once: `a = 1, b = 2;`, and a declaration of many names.

Usage: statements.py FILE...   prints FILE:LINE: what, for each. The head of a `for` may have commas, and a macro."""

import re
import sys

NAMES_MOST = 4  # of one declaration
VALUES_MOST = 2  # given to them

SKIPPED = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|(?<!\w)'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.S | re.M
)
TEMPLATE = re.compile(r"(?<=\w)<[^<>;{}]*>|\btemplate\s*<[^<>;{}]*>|<<<[^;{}]*?>>>")
# What may stand before a statement.
HEAD = re.compile(r"\s+|(else|do)\b|(if|while|for|switch)\s*(constexpr\s*)?\(\s*\)|case\b[^:]*:|\w+\s*:(?!:)")
DECLARATION = re.compile(r"(?!return\b)[A-Za-z_][\w:]*(\s+[A-Za-z_]|\s*[*&]+\s*[A-Za-z_])")
# Members of C++ are initialised with commas, tables declared elsewhere may share a line.
EXEMPT = re.compile(r"[^?]*\)\s*:[^:]|extern\b")
STRUCT = re.compile(r"\b(struct|union)(\s+\w+)?\s*$")
# A parenthesis after one of these holds an expression, not arguments.
EXPRESSION = re.compile(r"(\b(if|while|switch|return)|[=(,?:&|!+;{])\s*$")


def blank(text):
    """text with nothing but its line ends."""
    return re.sub(r"[^\n]", " ", text)


def wrong(statement):
    """What is wrong with a statement whose brackets are empty, or None."""
    parts = statement.split(",")
    values = sum("=" in part for part in parts)
    if len(parts) == 1 or EXEMPT.match(statement):
        return None
    if DECLARATION.match(statement):
        much = len(parts) > NAMES_MOST or values > VALUES_MOST
        return f"a declaration of {len(parts)} names, {values} with a value" if much else None
    return "a comma between statements" if re.search(r"=|\+\+|--|\(", statement) else None


def findings(text):
    """(where, the statement with its brackets empty, what is wrong) of each statement that says too much."""
    code = SKIPPED.sub(lambda m: ('""' if m[0][0] in "\"'" else "  ") + blank(m[0])[2:], text)
    while code != (code := TEMPLATE.sub(lambda m: blank(m[0]), code)):
        pass
    code = list("{" + code + "}")
    found, opened = [], []
    for end, char in enumerate(code):
        if char in "([{":
            opened.append(end)
        if char not in ")]}":
            continue
        begin = opened.pop()
        inside = "".join(code[begin + 1 : end])
        if char == "}":
            for part in re.finditer("[^;]*;", inside):
                at, stop = part.span()
                while head := HEAD.match(inside, at, stop):
                    at = head.end()
                if what := wrong(inside[at:stop]):
                    found.append((begin + at, inside[at : stop - 1], what))
            # An initialiser is a value, and a struct a type; a block ends what stood before it.
            rest = "".join(code[end + 1 : end + 200]).lstrip()
            value = ";" not in inside and rest[:1] in ",;).]}"
            struct = STRUCT.search("".join(code[max(0, begin - 80) : begin]))
            code[begin] = "_" if value or struct else ";"
            code[end] = " "
        elif char == ")" and "," in inside and EXPRESSION.search("".join(code[max(0, begin - 40) : begin])):
            found.append((begin - 1, inside, "a comma between expressions"))
        code[begin + 1 : end] = blank(inside)
    return sorted(found)


def main():
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        for where, _, what in findings(text):
            print(f"{name}:{text.count(chr(10), 0, where) + 1}: {what}")


if __name__ == "__main__":
    main()
