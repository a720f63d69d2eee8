"""What suite.py runs: groups of commands of run.sh whose results stand on one page.

A command is a list of arguments and an environment. Within a group all commands run in turns, round
after round. Commands with equal job, records and keys must print equal checksums; J5 prints none and is
checked by `run.sh check5`.
"""
import os

WITH_FLINK = bool(os.environ.get("WITH_FLINK"))
WITH_ROCKSDB = "rocksdb" in os.environ.get("FEATURES", "")
SMALL = bool(os.environ.get("SMALL"))

# 8 GiB for Flink in all: with state on the heap it is heap, with RocksDB or a batch sort it is half native.
ON_HEAP = ("7g", "managed=128m")
NATIVE = ("3g", "managed=4g")

KEYS = ["1000"] if SMALL else ["1000", "1000000", "20000000"]
MIDDLE = KEYS[-1] if SMALL else "1000000"
N = "n=20000" if SMALL else ""
FLINK_BATCH = "mode=batch sortmem=1g reuse=true"
DISKS = ["disk"] + (["rocksdb"] if WITH_ROCKSDB else [])


def run(peer, job, options=""):
    """A Rust program's command."""
    return [([peer, job] + (options + " " + N).split(), {})]


def flink(job, options, memory=ON_HEAP):
    """Flink's command; none where it is not installed, or in a small run."""
    if not WITH_FLINK or SMALL:
        return []
    return [(["flink", job, memory[1]] + options.split(), {"HEAP": memory[0]})]


def ours(job, options=""):
    """Our command."""
    return run("ours", job, options)


def each(values, commands):
    """The commands of each value, one after the other."""
    return [command for value in values for command in commands(value)]


def j1(keys):
    """An output a record: all programs at one number of keys."""
    of_ours = ours("J1", f"k={keys} mode=batch") + each(
        DISKS, lambda disk: ours("J1", f"k={keys} mode=mixed state={disk}"))
    by_hand = each(["gen", "hash", "radix2"], lambda v: run("limit", "J1", f"k={keys} v={v}"))
    peers = run("renoir", "J1", f"k={keys}") + run("timely", "J1", f"k={keys}")
    return of_ours + by_hand + peers + flink("J1", f"k={keys} reuse=true") + flink(
        "J1", f"k={keys} {FLINK_BATCH}", NATIVE)


def j1_stream(keys):
    """Ours record by record: over a store on disk, far fewer records, for it is slow."""
    few = "n=20000" if SMALL else "n=2000000"
    commands = ours("J1", f"k={keys} mode=stream state=heap")
    for disk in DISKS:
        commands += ours("J1", f"k={keys} mode=stream state={disk} {few}")
    rocks = f"k={keys} state=rocksdb reuse=true n=5000000"
    return commands + flink("J1", rocks, NATIVE)


def j1_final(keys):
    """One output a key."""
    modes = each(["mixed", "batch"], lambda mode: ours("J1", f"k={keys} mode={mode} v=final"))
    by_hand = run("limit", "J1", f"k={keys} v=final")
    return modes + by_hand + run("renoir", "J1", f"k={keys} v=final") + run(
        "timely", "J1", f"k={keys} v=dd")


def by_cache(keys):
    """Ours record by record with skewed keys, by keys in the write-back cache; memory has none."""
    few = "n=20000" if SMALL else "n=1000000"
    skewed = f"k={MIDDLE} order=skewed mode=stream cache={keys} {few}"
    return each(["heap"] + DISKS, lambda store: ours("J1", f"{skewed} state={store}"))


def budget(mib):
    return ours("J1", f"k={MIDDLE} mode=mixed state=disk sortmem={mib}")


def parallel(p):
    return ours("J1", f"k={MIDDLE} mode=mixed state=disk p={p}")


def b1(keys):
    """FLIP-327's own job in each mode; record by record over a store on disk, a tenth of the records."""
    few = {"stream": "" if SMALL else "n=1000000"}
    options = lambda disk, mode: f"k={keys} p=1 cache=1 mode={mode} state={disk} {few.get(mode, '')}"
    return each(DISKS, lambda disk: each(
        ["stream", "mixed", "batch"], lambda mode: ours("B1", options(disk, mode))))


# Words of the input file, which its readers do not count by themselves.
WORDS = "words=73141240"
LIVE = "backlog=20000 rate=1000 secs=6" if SMALL else "secs=15"

GROUPS = {
    "j1": each(KEYS, j1),
    "j1-stream": each(KEYS, j1_stream),
    "j1-final": each(KEYS, j1_final),
    "j1-flink-rocksdb": flink("J1", f"k={MIDDLE} state=rocksdb reuse=true", NATIVE),
    "j1-cache": each([1, 100, 1000, 10000, 100000], by_cache),
    "j1-budget": each([256, 128, 64, 32, 16, 8, 4], budget),
    "j1-parallelism": each([1, 2, 4], parallel),
    "j1-memory": ours("J1", f"k={MIDDLE} mode=mixed state=disk sortmem=64 memory=true"),
    "j2": ours("J2", "mode=batch") + ours("J2", "mode=stream")
    + each(["hash", "sort"], lambda v: run("limit", "J2", f"v={v}"))
    + run("renoir", "J2") + run("timely", "J2")
    + flink("J2", "reuse=true") + flink("J2", FLINK_BATCH, NATIVE),
    "b1": each(["100"] if SMALL else ["1000", "1000000", "10000000"], b1),
    "b2": ours("B2", "p=1 mode=stream") + ours("B2", "p=1 mode=batch"),
    "j3": [] if SMALL else ours("J3", WORDS) + each(["1", "2"], lambda t: run("limit", "J3", f"threads={t}"))
    + run("renoir", "J3", WORDS) + run("renoir", "J3", f"v=preagg {WORDS}") + run("timely", "J3", WORDS)
    + flink("J3", "reuse=true") + flink("J3", FLINK_BATCH, NATIVE),
    "j4": ours("J4") + ours("J4", "v=cache") + run("limit", "J4") + run("limit", "J4", "v=cache")
    + run("renoir", "J4") + run("renoir", "J4", "v=vec") + run("renoir", "J4", "v=file")
    + each(["false", "true"], lambda cache: flink("J4", f"{FLINK_BATCH} cache={cache}", NATIVE)),
    "j5": [] if SMALL else ours("J5", "lz4=0") + ours("J5", "lz4=1") + run("limit", "J5", "v=copy") + run("limit", "J5", "v=sort")
    + [(["gnusort"], {})] + run("extsort", "J5")
    + flink("J5", "reuse=true sortmem=128m managed=256m mode=batch", ("2g", "managed=256m")),
    "j6": ours("J6", "mode=stream by=key") + ours("J6", "mode=batch by=key")
    + ours("J6", "mode=stream by=turn") + ours("J6", "mode=batch by=turn") + run("limit", "J6")
    + run("renoir", "J6", "v=keyby") + run("timely", "J6")
    + flink("J6", "mode=streaming by=keyby reuse=true") + flink("J6", "mode=batch by=keyby reuse=true"),
    "j7": ours("J7", f"{LIVE} state=heap checkpoint=1000 series=true")
    + each(DISKS, lambda disk: ours("J7", f"{LIVE} state={disk} checkpoint=1000 series=true"))
    + run("renoir", "J7", LIVE) + run("timely", "J7", LIVE)
    + flink("J7", "timeout=5ms reuse=true secs=15"),
}
