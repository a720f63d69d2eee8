#!/usr/bin/env python3
"""Runs groups of jobs in turns, keeps every result line, checks checksums, writes pages.

suite.py run [--runs 3] [GROUP...]    one line a run, to results.jsonl in $PEERS_DIR; no group: all
suite.py pages DIRECTORY              a Markdown page a group, of what results.jsonl has
"""
import json
import os
import platform
import statistics
import subprocess
import sys
import time

from groups import GROUPS, WITH_ROCKSDB

HERE = os.path.dirname(os.path.abspath(__file__))
DIR = os.environ.get("PEERS_DIR", os.path.join(HERE, ".peers"))
RESULTS = os.path.join(DIR, "results.jsonl")
# Variants that do a part of the job alone, to show its cost: their checksum is not the job's.
ALONE = ("v=copy", "v=gen")
MORE = ("emitted", "jobs_s", "mb_per_s", "backlog_s", "p50_ms", "p99_ms", "p999_ms", "switch_p50_ms",
        "switch_p99_ms", "state_reads", "state_writes", "bytes_spilled", "runs")


def busy():
    """CPU seconds that the whole machine has worked since it started (Linux)."""
    with open("/proc/stat", encoding="ascii") as stat:
        ticks = [int(field) for field in stat.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def once(command, environment):
    """Runs one command; its result line with wall time, CPU time and what else the machine did."""
    start, busy_before, cpu_before = time.time(), busy(), os.times()
    done = subprocess.run([os.path.join(HERE, "run.sh")] + command, env={**os.environ, **environment},
                          capture_output=True, text=True, check=False)
    wall, cpu_after = time.time() - start, os.times()
    cpu = (cpu_after.children_user + cpu_after.children_system
           - cpu_before.children_user - cpu_before.children_system)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    job = command[1] if len(command) > 1 else "J5"
    result = json.loads(lines[-1]) if lines else {"peer": "failed", "job": job, "error": done.stderr[-600:]}
    others = max(0, busy() - busy_before - cpu) / wall
    result.update(args=" ".join(command), wall_s=round(wall, 3), exit=done.returncode,
                  cpu_s=round(cpu, 2), others_cores=round(others, 2))
    if result["job"] == "J5" and lines and "v=copy" not in command:
        check = subprocess.run([os.path.join(HERE, "run.sh"), "check5"], capture_output=True, text=True,
                               check=False)
        found = json.loads(check.stdout)
        result["checksum"] = found["checksum"] if found["sorted"] else "not sorted"
    return result


def run(arguments):
    """Each group's commands in turns, as many rounds as asked for."""
    runs = 3
    if "--runs" in arguments:
        at = arguments.index("--runs")
        runs = int(arguments[at + 1])
        del arguments[at:at + 2]
    for group in arguments or GROUPS:
        for number in range(runs):
            for command, environment in GROUPS[group]:
                result = once(command, environment)
                result.update(group=group, round=number)
                with open(RESULTS, "a", encoding="utf-8") as results:
                    results.write(json.dumps(result) + "\n")
                print(group, result.get("peer"), result["args"], result.get("seconds"), "s, others",
                      result["others_cores"], result.get("checksum", result.get("error")), flush=True)
    results = read()
    failed = [result["args"] for result in results if "error" in result]
    for command in failed:
        print("FAILED", command, file=sys.stderr)
    return 1 if failed or disagreements(results) else 0


def read():
    """All result lines."""
    with open(RESULTS, encoding="utf-8") as results:
        return [json.loads(line) for line in results]


def outputs(result):
    """What it gave an output for, where that makes another checksum."""
    if result["peer"].endswith("-running"):
        return "each count of a word"
    return "a key" if "v=final" in result["args"] or "v=dd" in result["args"] else "the job's own"


def disagreements(results):
    """Jobs of equal size whose checksums differ, as text."""
    sums = {}
    for result in results:
        if "checksum" in result and not any(alone in result["args"] for alone in ALONE):
            size = (result["job"], result["records"], result["keys"], outputs(result))
            sums.setdefault(size, {}).setdefault(result["checksum"], set()).add(result["peer"])
    found = [f"{size}: {by_sum}" for size, by_sum in sums.items() if len(by_sum) > 1]
    for text in found:
        print("CHECKSUMS DIFFER", text, file=sys.stderr)
    return found


def shell(command):
    """The first line that a command prints, or nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return (done.stdout or done.stderr).strip().split("\n")[0]


def versions():
    """The crates that were run, from the lock file, and the tools."""
    wanted = ["timely", "renoir", "differential-dataflow", "extsort", "fjall", "slackwater"]
    if WITH_ROCKSDB:
        wanted.append("rocksdb")
    found, name = [], ""
    with open(os.path.join(HERE, "Cargo.lock"), encoding="utf-8") as lock:
        for line in lock:
            if line.startswith("name = "):
                name = line.split('"')[1]
            elif line.startswith("version = ") and name in wanted:
                found.append(f"{name} {line.split(chr(34))[1]}")
    commit = shell(["git", "-C", HERE, "rev-parse", "--short", "HEAD"])
    return ", ".join(found) + f"; commit {commit}; {shell(['rustc', '--version'])}"


def machine():
    """The processor, its cores, memory and system."""
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        models = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
        model = models[0] if models else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, {platform.system()} {platform.release()}"


def row(runs):
    """One table row: the medians of runs of one command."""
    ok = [result for result in runs if "seconds" in result]
    if not ok:
        return f"| failed | `{runs[0]['args']}` | | | | | | | | | |"
    seconds = sorted(result["seconds"] for result in ok)
    middle = statistics.median(seconds)
    typical = min(ok, key=lambda result: abs(result["seconds"] - middle))
    more = ", ".join(f"{key} {typical[key]}" for key in MORE if key in typical)
    options = " ".join(word for word in typical["args"].split()[2:] if not word.startswith("/"))
    others = max(result["others_cores"] for result in ok)
    peak = max(result["peak_rss"] for result in ok) / 1e6
    sums = " ".join(sorted({result["checksum"] for result in ok}))
    return (f"| {typical['peer']} | `{options}` | {typical['records']} | {typical['keys']} "
            f"| {middle:.2f} ({seconds[0]:.2f} .. {seconds[-1]:.2f}) | {typical['records'] / max(middle, 0.001) / 1e6:.2f} "
            f"| {statistics.median(result['wall_s'] for result in ok):.1f} | {peak:.0f} | {others:.1f} | {sums} | {more} |")


def pages(directory):
    """A page a group."""
    by_group = {}
    for result in read():
        by_group.setdefault(result["group"], {}).setdefault(result["args"], []).append(result)
    os.makedirs(directory, exist_ok=True)
    for group, commands in by_group.items():
        rounds = max(len(runs) for runs in commands.values())
        text = [f"# {group}", "",
                f"Written by `benches/peers/run_all.sh {group}`: {rounds} rounds in turns, medians, least and",
                "greatest. `others` is the most that other programs used of the machine during a run, in",
                "cores: figures with much of it are not to be trusted. `seconds` are those in the job.", "",
                f"- Machine: {machine()}", f"- Versions: {versions()}", "",
                "| program | options | records | keys | seconds | M records/s | process s | peak MB | others | checksum | more |",
                "|" + "---|" * 11]
        text += [row(runs) for runs in commands.values()]
        with open(os.path.join(directory, group + ".md"), "w", encoding="utf-8") as page:
            page.write("\n".join(text) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        sys.exit(run(sys.argv[2:]))
    elif sys.argv[1:2] == ["pages"]:
        pages(sys.argv[2])
    else:
        sys.exit(__doc__)
