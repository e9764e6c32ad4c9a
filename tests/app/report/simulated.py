"""A run of many GPUs that never was: what `tessera plan` predicts of it, with ranks that differ by chance. For tests
and pictures of the report, where it says so itself."""

import json
import random

LANES = ["read", "upload", "exchange", "pack", "multiply", "download", "write"]
COMMAND = "tessera multiply A.h5 B.h5 -o C.h5 --trace trace.json (simulated: no such run was made)"


def rank_of(number, plan, model, chance, straggler):
    row, rest = divmod(number, plan["grid"][1] * plan["grid"][2])
    col, depth = divmod(rest, plan["grid"][2])
    node, place = divmod(number, plan["ranks_a_node"])
    one = {
        "rank": number,
        "row": row,
        "col": col,
        "depth": depth,
        "host": f"node{node:03}",
        "device": f"NVIDIA H200 #{place} (0000:{0x18 + 0x10 * place:02x}:00.0)",
        "cores": 16,
        "threads": 16,
        "io_threads": 8,
        "tiles": 12,
        "fallbacks": 0,
        "few": 0,
        "flops": model["multiply"]["flops"],
    }
    for lane in LANES:
        seconds = model[lane]["seconds"] * chance.lognormvariate(0, 0.04) * (1.22 if number == straggler else 1)
        moved = model[lane].get("bytes", one["flops"] / 900)
        one.update(
            {
                f"{lane}_seconds": seconds,
                f"{lane}_bytes": moved,
                f"{lane}_GBps": moved / seconds / 1e9 if seconds else 0,
            }
        )
    one["kernel_seconds"] = one["multiply_seconds"]
    one["kernel_gflops"] = one["flops"] / one["kernel_seconds"] / 1e9
    one["wall_seconds"] = max(one[f"{lane}_seconds"] for lane in LANES) * chance.uniform(1.05, 1.12)
    one["gflops"] = one["flops"] / one["wall_seconds"] / 1e9
    one.update(
        host_peak_bytes=plan["host_bytes"] + 2.1e9, device_bytes=plan["device_bytes"], kernels="tf32x3 1", overflows=0
    )
    return one


def record_of(plan, seed=3):
    """A log as --log writes it, of a plan as `plan --json` writes it."""
    chance = random.Random(seed)
    ranks = [rank_of(i, plan, plan["lanes"], chance, plan["ranks"] // 3) for i in range(plan["ranks"])]
    lane = plan["bounded_by"]
    seconds = 1.02 * max(rank["wall_seconds"] for rank in ranks)
    busiest = max(ranks, key=lambda rank: rank[f"{lane}_seconds"])
    mean = sum(rank[f"{lane}_seconds"] for rank in ranks) / len(ranks)
    m, n, k = plan["m"], plan["n"], plan["k"]
    record = {
        "format": 2,
        "status": "done",
        "exit_code": 0,
        "message": "",
        "stage": "publish",
        "progress": 1,
        "command": COMMAND,
        "started": "2026-11-23T09:00:00Z",
        "transpose_a": 0,
        "transpose_b": 0,
        "alpha": 1,
        "beta": 0,
        "gram": 0,
        "triangle": "full",
        "m": m,
        "n": n,
        "k": k,
        "products": 1,
        "teams": 1,
        "grid_m": plan["grid"][0],
        "grid_n": plan["grid"][1],
        "grid_k": plan["grid"][2],
        "rank_count": len(ranks),
        "super_blocks_m": plan["super_blocks"][0],
        "super_blocks_n": plan["super_blocks"][1],
        "panel": plan["panel"],
        "kernel": "tf32x3",
        "kernel_chosen": "tf32x3",
        "kernels": "tf32x3 1",
        "accuracy": "ieee",
        "input": plan["type"],
        "type": plan["type"],
        "transport": "nccl",
        "schedule": plan["schedule"],
        "io": "direct",
        "versions": "simulated",
        "seconds": seconds,
        "setup_seconds": 6.4,
        "gflops": 2 * m * n * k / seconds / 1e9,
        "predicted_seconds": plan["seconds"],
        "kernel_measured": 1,
        "planned_device_bytes": plan["device_bytes"],
        "planned_host_bytes": plan["host_bytes"],
        "limit_seconds": busiest[f"{lane}_seconds"],
        "limit_share": busiest[f"{lane}_seconds"] / seconds,
        "limit_rank": busiest["rank"],
        "limit_lane": lane,
        "slowest_rank": busiest["rank"],
        "slowest_lane": lane,
        "slowest_seconds": busiest[f"{lane}_seconds"],
        "slowest_behind_seconds": busiest[f"{lane}_seconds"] - mean,
        "check": "not run",
        "warnings": "",
        "overflows": 0,
    }
    for name, value in zip(
        ("mpi", "device", "transport", "plan", "allocation", "files"), (2.1, 0.9, 1.6, 0.1, 1.2, 0.5)
    ):
        record[f"setup_{name}_seconds"] = value
    for lane in LANES:
        one, took = plan["lanes"][lane], plan["lanes"][lane]["seconds"]
        record[f"predicted_{lane}_seconds"] = took
        record[f"expected_{lane}_{'gflops' if lane == 'multiply' else 'GBps'}"] = (
            one.get("bytes", one.get("flops", 0)) / took / 1e9 if took else 0
        )
    for name, rows, cols in (("a", m, k), ("b", k, n), ("c", m, n)):
        record.update(
            {
                name: f"{name.upper()}.h5:/{name.upper()}",
                f"{name}_rows": rows,
                f"{name}_cols": cols,
                f"{name}_type": plan["type"],
            }
        )
    return dict(record, ranks=ranks)


def trace_of(record, steps=12):
    """A trace as --trace writes it: panels of each rank one behind the other, lanes beside each other."""
    chance, events = random.Random(5), []
    for rank in record["ranks"]:
        events.append(
            {
                "ph": "M",
                "name": "process_name",
                "pid": rank["rank"],
                "args": {"name": f"rank {rank['rank']} on {rank['host']}: {rank['device']}"},
            }
        )
        lanes = [
            lane
            for lane in ("read", "upload", "exchange", "multiply", "download", "write")
            if rank[f"{lane}_seconds"] > 0
        ]
        free = dict.fromkeys(LANES, 0.0)
        for step in range(steps):
            at = 0.0
            for lane in lanes:
                took = rank[f"{lane}_seconds"] / steps * chance.uniform(0.9, 1.1)
                begin = max(at, free[lane])
                at = free[lane] = begin + took
                operand = "AB"[step % 2] if lane in ("read", "upload", "exchange") else "C"
                events.append(
                    {
                        "ph": "X",
                        "name": f"{lane} {operand}",
                        "cat": "step",
                        "pid": rank["rank"],
                        "tid": LANES.index(lane),
                        "ts": round(begin * 1e6, 3),
                        "dur": round(took * 1e6, 3),
                        "args": {
                            "kind": lane,
                            "operand": operand,
                            "bytes": rank[f"{lane}_bytes"] / steps,
                            "flops": rank["flops"] / steps if lane == "multiply" else 0,
                        },
                    }
                )
    return {"displayTimeUnit": "ms", "otherData": {"format": 2, "command": record["command"]}, "traceEvents": events}


def make(plan, record="run512.json", trace="trace512.json"):
    """Both files, of the file of `plan --json`."""
    with open(plan) as file:
        made = record_of(json.load(file))
    for name, what in ((record, made), (trace, trace_of(made))):
        with open(name, "w") as file:
            json.dump(what, file)
    return made
