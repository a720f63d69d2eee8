#!/usr/bin/env bash
# Everything, from nothing to docs/benchmarks: builds the peers and ours, makes the input files, runs all
# groups in turns, compares checksums, writes the pages and draws the figures.
#
#     run_all.sh                 all groups; hours, most of them Flink's
#     run_all.sh j1 j6           these groups only
#     RUNS=5 run_all.sh j1       five rounds instead of three
#     SMALL=1 run_all.sh         small sizes: to see that all still runs; writes to $PEERS_DIR/small
#     FEATURES=rocksdb run_all.sh   our RocksDB store, too
#
# Flink takes part where Java is there and its package can be had; without it, its rows are missing and
# the pages say so. PEERS_DIR holds installs, inputs and results (default: .peers beside this script).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export PEERS_DIR=${PEERS_DIR:-$PWD/.peers}
mkdir -p "$PEERS_DIR"

docs=../../docs/benchmarks
if [ -n "${SMALL:-}" ]; then
    docs="$PEERS_DIR/small"
    mkdir -p "$docs"
fi

./run.sh setup-rust
if command -v java >/dev/null && ./run.sh setup-flink; then
    export WITH_FLINK=1
else
    echo "no Java, or no Flink: its rows will be missing" >&2
    unset WITH_FLINK
fi
[ -n "${SMALL:-}" ] || ./run.sh data

# What was measured is written even where a command failed; the end then says so.
status=0
./suite.py run --runs "${RUNS:-3}" "$@" || status=$?
./suite.py pages "$docs"
"${PEERS_TARGET:-$PEERS_DIR/target}/release/plots" "$PEERS_DIR/results.jsonl" "$docs"
echo "written to $docs"
exit "$status"
