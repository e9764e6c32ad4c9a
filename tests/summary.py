"""The last line of tests/run.sh, over all runs of ctest: how many tests ran, how many were left out, and why.

Usage: summary.py FOLDER...     FOLDER: a build, with what ctest printed in FOLDER/tests.log, and its log below Testing.
A test is left out when ctest calls it skipped. Its reason is the line `skipped: REASON` that it printed, to the first
colon or bracket.
Exit code: 0 every test passed or was left out with a reason, 1 one failed or gave no reason, or there was none."""

import collections
import pathlib
import re
import sys

RESULT = re.compile(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*(.*?) +\d+\.\d+ sec", re.M)
OUTPUT = re.compile(r"^\d+/\d+ Test: (\S+)\n.*?^Output:\n-+\n(.*?)<end of output>", re.M | re.S)
REASON = re.compile(r"^skipped: ([^:(\n]+)", re.M)


def text(file):
    """Empty where ctest did not come as far as to write it."""
    return file.read_text(errors="replace") if file.exists() else ""


def results(folder):
    """(test, "Passed", "***Skipped", ...) as printed, and each test's own output."""
    printed, log = (text(folder / name) for name in ("tests.log", "Testing/Temporary/LastTest.log"))
    return [(name, state.strip()) for name, state in RESULT.findall(printed)], dict(OUTPUT.findall(log))


def summary(folders):
    """The line, and whether all is well."""
    passed, failed, reasons = 0, 0, collections.Counter()
    for folder in folders:
        states, outputs = results(folder)
        for name, state in states:
            if state == "Passed":
                passed += 1
            elif state == "***Skipped":
                reason = REASON.search(outputs.get(name, ""))
                reasons[reason[1].strip() if reason else f"no reason given by {name}"] += 1
            else:
                failed += 1
    why = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    left_out = f"{sum(reasons.values())} left out{': ' * bool(why)}{why}"
    line = f"tests: {passed + failed} ran, {passed} tests passed, {failed} failed; {left_out}"
    return line, passed > 0 and failed == 0 and not any(reason.startswith("no reason given") for reason in reasons)


if __name__ == "__main__":
    line, well = summary([pathlib.Path(name) for name in sys.argv[1:]])
    print(line)
    sys.exit(0 if well else 1)
