"""The page of tessera report in a browser: what it says is what the record says, it asks no network for anything, and
mouse and keys do what they should. Pictures at 1280 and 390 pixels stay in the build's folder report_pictures."""

import json
import os
import pathlib
import shutil
import sys
import time

from lib import TESSERA, main, np, run, write
from browser import Browser, Missing
import simulated

ROOT = pathlib.Path(__file__).resolve().parents[3]
PICTURES = pathlib.Path(TESSERA).resolve().parent / "report_pictures"
LANES = ["read", "upload", "exchange", "pack", "multiply", "download", "write"]
WIDTHS = (1280, 390)

try:
    browser = Browser()
except Missing as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def load(name):
    with open(name) as file:
        return json.load(file)


def words(text):
    return " ".join(text.replace("\u202f", "").replace("×", "x").replace("µs", "us").split())


def text_of(selector):
    return browser.run("document.querySelector(arguments[0]).textContent", selector)


def count(selector):
    return browser.run("document.querySelectorAll(arguments[0]).length", selector)


def pictures(name):
    PICTURES.mkdir(exist_ok=True)
    for width in WIDTHS:
        browser.picture(PICTURES / f"{name}_{width}.png", width)
        wide = browser.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{name}: {wide} pixels wide on a screen of {width}"


def sentence_of(*arguments):
    """As the terminal says it."""
    out = run("report", *arguments, "--text").out
    return words(out[out.index("\nA ") :].partition("\n\n")[0])


def show(name, *arguments):
    """Opens the page of it; nothing is said in the console and nothing asked of a network, here and whatever was done
    before."""
    run("report", *arguments, "-o", "page.html")
    browser.open(os.path.abspath("page.html"))
    pictures(name)
    browser.resize(1280)
    quiet()


def quiet():
    said, asked = browser.console(), browser.requests()
    assert not said and not asked, (said, asked)


def check_record(record, *arguments):
    """Texts and counts of one run."""
    assert words(text_of("h1")) == sentence_of(*arguments), text_of("h1")
    busy = [lane for lane in LANES if any(rank[f"{lane}_seconds"] > 0 for rank in record["ranks"])]
    names = browser.run("[...document.querySelectorAll('#lanes .name')].map(name => name.textContent)")
    assert names == busy, (names, busy)
    share = f"{int(100 * record['limit_share'] + .5)} %"
    facts = browser.run("[...document.querySelectorAll('.facts dd')].map(fact => fact.textContent)")
    assert facts[2].startswith(share), (facts, share)
    said = [record.get(name, "not run") for name in ("check", "product_check")]
    said = [text for text in said if not text.startswith("not run")]
    passed = said and said[0].startswith("PASSED")
    assert ("passed" in facts[3]) == bool(passed) and ("not run" in facts[3]) == (not said), (facts, said)
    assert record["versions"] in text_of("#about") and text_of("#command") == record["command"]
    label = browser.run("document.querySelector('#lanes .bars').getAttribute('aria-label')")
    assert label and count("[role=listitem]:not([aria-label])") == 0 == count(
        "figure svg:not([role=img][aria-label]):not(.legend svg)"
    )


def make_runs():
    write("a.h5", np.ones((400, 300), "f4")), write("b.h5", np.ones((300, 500), "f4"))
    for ranks in (1, 2):
        run(
            "multiply",
            "a.h5",
            "b.h5",
            "-o",
            f"c{ranks}.h5",
            "--device",
            "cpu",
            "--panel",
            50,
            "--verify",
            "--log",
            f"run{ranks}.json",
            "--trace",
            f"trace{ranks}.json",
            ranks=ranks,
        )


def span():
    return browser.run(
        "[Number(time.dataset.from), Number(time.dataset.to)]".replace("time", "document.getElementById('time')")
    )


def changed(before):
    """What is shown once the browser has dealt with events."""
    for _ in range(50):
        if span() != before:
            time.sleep(0.1)
            break
        time.sleep(0.02)
    return span()


def mouse(kind, x, y, **more):
    browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", dict({"type": kind, "x": x, "y": y}, **more))


def press(x, y, to=None):
    mouse("mousePressed", x, y, button="left", clickCount=1)
    if to:
        mouse("mouseMoved", (x + to) / 2, y, button="left", buttons=1), mouse(
            "mouseMoved", to, y, button="left", buttons=1
        )
    mouse("mouseReleased", to or x, y, button="left", clickCount=1)


def key(text):
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser.driver).send_keys(text).perform()


def canvas():
    box = browser.run(
        "(() => { const c = document.getElementById('time'); c.scrollIntoView({block: 'center'}); "
        "const b = c.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
    )
    return box


def check_timeline(trace):
    """Zoom by wheel, keys and drag; a step is told with bytes and rate."""
    steps = [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] != "start-up"]
    begins = trace["otherData"]["run_begins"]
    left, top, width, height = canvas()
    all_of = span()
    assert all_of[0] == 0 and abs(all_of[1] - max(e["ts"] + e["dur"] - begins for e in steps)) < 1, all_of
    assert browser.run("Number(document.getElementById('time').dataset.rows)") == len(
        {(e["pid"], e["tid"]) for e in steps}
    )
    mouse("mouseWheel", left + width / 2, top + height / 2, deltaX=0, deltaY=-100)
    time.sleep(0.7)  # the browser ends the scrolling of the page, which later turns of the wheel would belong to
    assert span() == all_of, "the wheel scrolls the page until the timeline is clicked"
    left, top, width, height = canvas()
    press(left + width / 2, top + height - 3)
    for _ in range(3):
        mouse("mouseWheel", left + width / 2, top + height / 2, deltaX=0, deltaY=-100)
    near = changed(all_of)
    assert 0 < near[0] < near[1] < all_of[1] and near[1] - near[0] < 0.5 * all_of[1], (near, all_of)
    key("-")
    assert span()[1] - span()[0] > near[1] - near[0]
    key("0")
    assert span() == all_of
    key("+")
    assert abs(span()[1] - span()[0] - 0.6 * all_of[1]) < 1e-6 * all_of[1]
    key("0")
    press(left + width * 0.3, top + height / 2, to=left + width * 0.5)
    part = span()
    assert part[1] - part[0] < 0.3 * all_of[1], part
    key("0")
    key("."), key(".")
    told = text_of("#told")
    first = sorted((e for e in steps if e["pid"] == 0 and e["tid"] == 0), key=lambda e: e["ts"])[1]
    assert told.startswith(f"{first['args']['kind']} {first['args']['operand']} · read lane of rank 0 · at "), told
    assert "GB/s" in told and " for " in told, told


def column(at):
    return browser.run(
        "[...document.querySelectorAll('#ranks tbody tr')].map(row => row.children[arguments[0]].textContent)", at
    )


def check_sort(record):
    """A click sorts, another turns round."""
    order = [str(rank["rank"]) for rank in sorted(record["ranks"], key=lambda rank: -rank["multiply_seconds"])]
    button = browser.driver.find_element("css selector", "#ranks [data-column=multiply]")
    browser.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", button)
    button.click()
    assert column(0) == order, (column(0), order)
    assert browser.run("arguments[0].parentElement.getAttribute('aria-sort')", button) == "descending"
    button.click()
    assert column(0) == order[::-1]


def test_one_rank():
    make_runs()
    show("one_rank", "run1.json", "--trace", "trace1.json")
    check_record(load("run1.json"), "run1.json")
    check_timeline(load("trace1.json"))
    quiet()
    with open("memory.json", "w") as file:
        json.dump(dict(load("run1.json"), redistribute_seconds=0.25, redistribute_bytes=3.5e6), file)
    assert "Redistribution" not in text_of("#about")
    show("redistributed", "memory.json")
    assert "250 ms of exchange, 3.5 MB of matrices in memory from rank to rank" in text_of("#about")


def test_machine():
    """Ceilings by a machine file, which the page names wherever it shows them."""
    machine = ROOT / "jobs/h200_example.machine"
    shutil.copy(machine, "cluster.machine")
    show("machine", "run1.json", "--trace", "trace1.json", "--machine", "cluster.machine")
    assert "the rates of cluster.machine" in text_of("#lanes .legend"), text_of("#lanes .legend")
    assert "typical" not in text_of("#lanes") and "of 215 TFLOP/s" in text_of("#lanes"), text_of("#lanes")
    roofs = text_of("#roofline .legend")
    assert "a GPU’s speed by cluster.machine" in roofs and "4.3 TB/s by cluster.machine" in roofs, roofs
    long = "of-a-cluster-with-a-long-name-" * 4 + ".machine"
    os.rename("cluster.machine", long)
    show("machine_long", "run1.json", "--machine", long)
    show("record", "run1.json")
    assert "cluster" not in text_of("main") and "rates" in text_of("#lanes .legend")


def test_two_ranks():
    show("two_ranks", "c2.h5", "--trace", "trace2.json")
    record = load("run2.json")
    check_record(record, "c2.h5")
    assert count("#ranks tbody tr") == 2
    check_sort(record)
    check_timeline(load("trace2.json"))
    paper = "getComputedStyle(document.body).backgroundColor"
    light = browser.run(paper)
    browser.media(prefers_color_scheme="dark")
    assert browser.run(paper) != light == "rgb(255, 255, 255)", light
    pictures("dark")
    browser.media(media="print", prefers_color_scheme="dark")
    assert (
        browser.run(paper) == light and not browser.driver.find_element("css selector", ".tools button").is_displayed()
    )
    browser.media()
    quiet()


def test_compared():
    show("compared", "run1.json", "run2.json")
    one, two = load("run1.json"), load("run2.json")
    more = two["seconds"] / one["seconds"] - 1
    assert count("#compared tbody tr") == 2
    if abs(more) > 0.021:
        assert ("longer" if more > 0 else "less") in text_of("h1"), (text_of("h1"), more)
    buttons = browser.driver.find_elements("css selector", ".runs button")
    buttons[1].click()
    assert text_of("#command") == two["command"] and buttons[1].get_attribute("aria-pressed") == "true"
    quiet()


def test_many_ranks():
    """512 GPUs of 128 nodes, simulated from a plan: folded by node, three ranks in the timeline."""
    run(
        "plan",
        "--shape",
        "400000",
        "--ranks",
        512,
        "--machine",
        ROOT / "jobs/h200_example.machine",
        "--json",
        "plan.json",
    )
    record = simulated.make("plan.json")
    show("simulated_512", "run512.json", "--trace", "trace512.json")
    check_record(record, "run512.json")
    assert count("#ranks tbody tr") == 3 + 128 == count("#ranks tr.node") + 3
    wall = sorted(record["ranks"], key=lambda rank: -rank["wall_seconds"])
    assert column(0)[:3] == [
        f"{wall[0]['rank']} (slowest)",
        f"{wall[256]['rank']} (median)",
        f"{wall[511]['rank']} (fastest)",
    ]
    toggle = browser.driver.find_element("css selector", "#ranks tr.node button")
    browser.run("arguments[0].scrollIntoView({block: 'center'})", toggle)
    toggle.click()
    assert count("#ranks tbody tr") == 3 + 128 + 4 and "512 ranks" in text_of("#timeline .hint")
    quiet()


def test_folded_ranks():
    """16 GPUs of four nodes: each node is folded until it is opened."""
    run(
        "plan",
        "--shape",
        "100000",
        "--ranks",
        16,
        "--machine",
        ROOT / "jobs/h200_example.machine",
        "--json",
        "plan.json",
    )
    simulated.make("plan.json", "run16.json", "trace16.json")
    show("simulated_16", "run16.json", "--trace", "trace16.json")
    rows = "Number(document.getElementById('time').dataset.rows)"
    first, opens = browser.run(rows), "#timeline .folds button"
    lanes = first / 4
    assert count(opens) == 4 and lanes == len(
        {e["tid"] for e in load("trace16.json")["traceEvents"] if e["ph"] == "X"}
    ), first
    browser.driver.find_element("css selector", opens).click()
    assert browser.run(rows) == 3 * lanes + 4 * lanes, browser.run(rows)
    assert browser.run(f"document.querySelector('{opens}').getAttribute('aria-expanded')") == "true"
    assert browser.run("document.activeElement.textContent") == text_of(opens)
    quiet()


def test_bench_and_plan():
    names = ["gemm1.json", "gemm2.json", "memory.json", "accuracy.json", "multiply.json"]
    for size, name in ((48, names[0]), (96, names[1])):
        run("bench", "gemm", "--shape", size, "--device", "cpu", "--repeat", 1, "--all", "--json", name)
    run("bench", "memory", "--size", 64, "--device", "cpu", "--repeat", 1, "--json", names[2])
    run("bench", "accuracy", "--size", 16, "--k", "16,64,256", "--device", "cpu", "--json", names[3])
    run("bench", "multiply", "--shape", 96, "--device", "cpu", "--repeat", 3, "--json", names[4])
    for ranks in (64, 128, 256, 512):
        names.append(f"plan{ranks}.json")
        run(
            "plan",
            "--shape",
            "400000",
            "--ranks",
            ranks,
            "--machine",
            ROOT / "jobs/h200_example.machine",
            "--json",
            names[-1],
        )
    show("bench", *names)
    kernels = [row for row in load("gemm1.json")["kernels"] if "gflops" in row]
    assert count("#gemm0 .name") == len(kernels), len(kernels)
    assert count("#memory-bench0 .name") == len(load("memory.json")["kernels"])
    inputs = {row["input"] for row in load("accuracy.json")["results"]}
    assert count("#accuracy0 figure") == len(inputs) and count("#shapes figure svg") >= 1
    assert count("#scaling figure") == 4 and "bounded by" in text_of("#plan0")
    quiet()
    run("plan", "--shape", "400000", "--ranks", 64, "--machine", ROOT / "jobs/h200_example.machine", "--scaling",
        "--json", "scaling.json")
    show("scaling", "scaling.json")
    counts = {64} | {at["ranks"] for at in load("scaling.json")["scaling"]}
    assert len(counts) > 2 and count("#scaling figure") == 3, counts
    rows = browser.run("[...document.querySelector('#scaling figure').querySelectorAll('tbody tr')].length")
    assert rows == len(counts) and count(".plans, #plan1") == 0, (rows, counts)
    quiet()


def test_hostile():
    """Names are texts wherever they stand; a number that is none is a dash."""
    record, trace = load("run2.json"), load("trace2.json")
    evil = "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'>\"&"
    record.update(
        command=evil, a=evil, warnings=evil, versions=evil, alpha=None, gflops=None, check=evil, limit_lane=evil
    )
    record["ranks"][0].update(host=evil, device=evil, wall_seconds=None, multiply_seconds=None)
    trace["otherData"]["command"] = evil
    for event in trace["traceEvents"]:
        if event["name"] == "process_name":
            event["args"]["name"] = f"rank {event['pid']} on {evil}: {evil}"
    for name, what in (("evil.json", record), ("evil_trace.json", trace)):
        with open(name, "w") as file:
            json.dump(what, file)
    run("report", "evil.json", "--trace", "evil_trace.json", "-o", "page.html")
    browser.open(os.path.abspath("page.html"))
    assert browser.run("window.hit") is None and count("img") == 0 and text_of("#command") == evil
    assert evil in text_of(".note") and "NaN" not in text_of("main") and "undefined" not in text_of("main")
    quiet()


with browser:
    main(globals())
