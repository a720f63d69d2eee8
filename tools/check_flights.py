#!/usr/bin/env python3
"""Checks results of the main job against values computed here from the same file.

    tools/check_flights.py FLIGHTS.csv RESULT.json...         compares; exit 1 at a difference
    tools/check_flights.py FLIGHTS.csv --write EXPECTED.json  writes the values

A result is the JSON that the main job writes, or the list under its "results" alone:
{carrier, origin, dest, flights, mean_delay, worst_delay} for each carrier and route. A delay is
dep_delay in minutes; a row without one counts as a flight, but not in mean and worst, which are null
where no row of the route has one. Means may differ by one part in a thousand million, counts and
worst delays not at all. Totals of each carrier are compared too. It shares no code with the engine.
"""

import argparse
import csv
import json
import math
import sys

TOLERANCE = 1e-9
SHOWN = 10
FIELDS = ("flights", "mean_delay", "worst_delay")


class Group:
    """What is known of one route, or of one carrier."""

    def __init__(self):
        self.flights = 0
        self.delays = []

    def add(self, delay):
        """Counts a flight, and its delay if it has one."""
        self.flights += 1
        if delay is not None:
            self.delays.append(delay)

    def values(self):
        """The three figures, as the job writes them."""
        if not self.delays:
            return {"flights": self.flights, "mean_delay": None, "worst_delay": None}
        mean = math.fsum(self.delays) / len(self.delays)
        return {"flights": self.flights, "mean_delay": mean, "worst_delay": max(self.delays)}


def read_flights(path):
    """Groups by route and by carrier."""
    routes, carriers = {}, {}
    with open(path, newline="", encoding="utf-8") as source:
        for row in csv.DictReader(source):
            text = row["dep_delay"]
            delay = None if text in ("", "NA") else float(text)
            route = (row["carrier"], row["origin"], row["dest"])
            routes.setdefault(route, Group()).add(delay)
            carriers.setdefault(row["carrier"], Group()).add(delay)
    return routes, carriers


def read_results(path):
    """The rows of a result, by route; complains of a route that comes twice."""
    with open(path, encoding="utf-8") as source:
        content = json.load(source)
    rows = content["results"] if isinstance(content, dict) else content
    results, problems = {}, []
    for row in rows:
        route = (row["carrier"], row["origin"], row["dest"])
        if route in results:
            problems.append(f"{' '.join(route)}: comes twice")
        results[route] = row
    return results, problems


def same(expected, found):
    """Whether two figures agree; None agrees with None alone."""
    if expected is None or found is None:
        return expected is None and found is None
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return False
    return math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def compare(name, expected, found):
    """The differences between two sets of figures."""
    problems = []
    for field in FIELDS:
        if field not in found:
            problems.append(f"{name}: {field} is missing")
        elif not same(expected[field], found[field]):
            problems.append(f"{name}: {field} is {found[field]}, expected {expected[field]}")
    return problems


def carrier_totals(results, routes):
    """Totals of each carrier, from a result's rows and the true number of delays of each route."""
    totals = {}
    for route, row in results.items():
        known = len(routes[route].delays) if route in routes else 0
        flights, minutes, delays, worst = totals.get(route[0], (0, 0.0, 0, None))
        flights += row["flights"]
        if row["mean_delay"] is not None:
            minutes += row["mean_delay"] * known
            delays += known
            worst = row["worst_delay"] if worst is None else max(worst, row["worst_delay"])
        totals[route[0]] = (flights, minutes, delays, worst)
    return {
        carrier: {"flights": flights, "mean_delay": minutes / delays if delays else None,
                  "worst_delay": worst}
        for carrier, (flights, minutes, delays, worst) in totals.items()
    }


def check(path, routes, carriers):
    """All differences of one result."""
    results, problems = read_results(path)
    for route, group in sorted(routes.items()):
        if route not in results:
            problems.append(f"{' '.join(route)}: is missing")
        else:
            problems += compare(" ".join(route), group.values(), results[route])
    problems += [f"{' '.join(route)}: is not in the file" for route in sorted(results)
                 if route not in routes]
    if not problems:
        totals = carrier_totals(results, routes)
        for carrier, group in sorted(carriers.items()):
            problems += compare(f"carrier {carrier}", group.values(), totals[carrier])
    return problems


def write(path, routes, carriers):
    """Writes the values, one row a line."""
    def lines(rows):
        return ",\n".join("  " + json.dumps(row) for row in rows)

    route_rows = [{"carrier": c, "origin": o, "dest": d, **group.values()}
                  for (c, o, d), group in sorted(routes.items())]
    carrier_rows = [{"carrier": c, **group.values()} for c, group in sorted(carriers.items())]
    with open(path, "w", encoding="utf-8") as target:
        target.write(f'{{"results": [\n{lines(route_rows)}\n],\n'
                     f'"carriers": [\n{lines(carrier_rows)}\n]}}\n')


def main():
    """Parses the command line and does it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flights", metavar="FLIGHTS.csv")
    parser.add_argument("results", metavar="RESULT.json", nargs="*")
    parser.add_argument("--write", metavar="EXPECTED.json")
    arguments = parser.parse_intermixed_args()
    if not arguments.results and not arguments.write:
        parser.error("nothing to compare and nothing to write")
    routes, carriers = read_flights(arguments.flights)
    if arguments.write:
        write(arguments.write, routes, carriers)
    bad = False
    for path in arguments.results:
        try:
            problems = check(path, routes, carriers)
        except (OSError, ValueError, KeyError, TypeError) as error:
            problems = [f"is no result: {error!r}"]
        bad |= bool(problems)
        if problems:
            print(f"{path}: {len(problems)} differences", file=sys.stderr)
            for problem in problems[:SHOWN]:
                print(f"  {problem}", file=sys.stderr)
        else:
            print(f"{path}: {len(routes)} routes and {len(carriers)} carriers agree")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
