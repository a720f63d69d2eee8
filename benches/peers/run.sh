#!/usr/bin/env bash
# Peers of the engine: installs them from the package registries and runs any one job.
#   run.sh setup                     both of the next two
#   run.sh setup-flink               install Flink (a PyPI wheel), compile the Java programs
#   run.sh setup-rust                compile the Rust programs, ours among them (FEATURES=rocksdb)
#   run.sh data [words|sort]         make the input files of J3 and J5
#   run.sh flink  JOB [k=v ...]      e.g. run.sh flink J1 k=1000000 state=rocksdb
#   run.sh ours|limit|renoir|timely|extsort JOB [k=v ...]
#   run.sh gnusort                   J5 with GNU sort
#   run.sh check5                    is the last J5 output sorted, and its checksum
# PEERS_DIR: where installs, inputs and temporary files go (default: .peers beside this script).
# PEERS_TARGET: where Rust programs are built (default: target in PEERS_DIR).
# HEAP: the JVM's heap (default 6g). JVM: further JVM options. Each job prints one JSON line.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PEERS_DIR=${PEERS_DIR:-$here/.peers}
FLINK=${FLINK_VERSION:-2.3.0}
lib=$PEERS_DIR/flink-$FLINK/pyflink/lib
export CARGO_TARGET_DIR=${PEERS_TARGET:-$PEERS_DIR/target}
bin=$CARGO_TARGET_DIR/release
data=$PEERS_DIR/data
tmp=$PEERS_DIR/tmp
mkdir -p "$data" "$tmp" "$PEERS_DIR/dl"

opens=()
for p in java.lang java.net java.io java.nio sun.nio.ch java.lang.reflect java.text java.time java.util \
    java.util.concurrent java.util.concurrent.atomic java.util.concurrent.locks; do
  opens+=("--add-opens=java.base/$p=ALL-UNNAMED")
done

setup_flink() {
  if [ ! -f "$lib/flink-dist-$FLINK.jar" ]; then
    python3 -m pip download -q --no-deps --no-build-isolation -d "$PEERS_DIR/dl" "apache-flink-libraries==$FLINK"
    python3 - "$PEERS_DIR" "$FLINK" <<'P'
import glob, sys, zipfile, tarfile, os
d, v = sys.argv[1:]
out = f"{d}/flink-{v}"
os.makedirs(out, exist_ok=True)
f = sorted(glob.glob(f"{d}/dl/apache*flink*libraries-{v}*"))[0]
if f.endswith(".whl"):
    zipfile.ZipFile(f).extractall(out)
else:
    with tarfile.open(f) as t:
        for m in t:
            m.name = m.name.split("/", 1)[-1]
            t.extract(m, out)
P
  fi
  mkdir -p "$PEERS_DIR/classes"
  javac -nowarn -Xlint:none -cp "$lib/*" -d "$PEERS_DIR/classes" "$here"/java/*.java
}

setup_rust() {
  (cd "$here" && cargo build --release --quiet -p peers -p plots)
  (cd "$here" && cargo build --release --quiet -p ours --features "${FEATURES:-}")
}

make_data() {
  case ${1:-all} in words|all) [ -f "$data/words.txt" ] || "$bin/gen" words "$data/words.txt" ;; esac
  case ${1:-all} in sort|all) [ -f "$data/sort.txt" ] || "$bin/gen" sort "$data/sort.txt" ;; esac
}

files=(tmp="$tmp")
add_files() {
  case $1 in
    J3) files+=(file="$data/words.txt") ;;
    J5) rm -f "$data"/sorted.txt*; files+=(file="$data/sort.txt" out="$data/sorted.txt")
      # Each begins with no page of another's waiting for the disk.
      sync ;;
  esac
}

cmd=${1:?usage: run.sh setup|data|flink|ours|limit|renoir|timely|extsort|gnusort|check5 ...}
shift
case $cmd in
  setup) setup_flink && setup_rust ;;
  setup-flink) setup_flink ;;
  setup-rust) setup_rust ;;
  data) make_data "$@" ;;
  flink)
    job=$1; shift; add_files "$job"
    # shellcheck disable=SC2086
    exec java "${opens[@]}" -Xmx"${HEAP:-6g}" -Xms"${HEAP:-6g}" ${JVM:--XX:+UseParallelGC} -Djava.io.tmpdir="$tmp" \
      -Dlog4j2.configurationFile="$here/java/log4j2.properties" \
      -cp "$PEERS_DIR/classes:$lib/*" "$job" "${files[@]}" "$@" ;;
  ours) add_files "$1"; exec "$bin/ours" "$1" "${files[@]}" "${@:2}" ;;
  limit|extsort) add_files "$1"; [ "$cmd" = limit ] && p=limit || p=extsort_bench
    exec "$bin/$p" "$1" "${files[@]}" "${@:2}" ;;
  renoir|timely) add_files "$1"; exec "$bin/${cmd}_bench" "$1" "${files[@]}" "${@:2}" ;;
  gnusort) add_files J5
    s=$(date +%s.%N)
    LC_ALL=C sort -S 256M --parallel=2 -T "$tmp" -o "$data/sorted.txt" "$data/sort.txt"
    python3 -c "import os,time;s=time.time()-$s;n=os.path.getsize('$data/sort.txt')//100
print('{\"peer\":\"gnu-sort-256M-parallel2\",\"job\":\"J5\",\"records\":%d,\"keys\":%d,\"seconds\":%.3f,\"records_per_s\":%.0f,\"checksum\":\"0\",\"peak_rss\":0}'%(n,n,s,n/s))" ;;
  check5) exec "$bin/gen" check5 "$data"/sorted.txt* ;;
  *) echo "unknown: $cmd" >&2; exit 2 ;;
esac
