"""A log of sensors that is checked by day alone: a table to try ``cida fit`` on, and its truth.

    python examples/sensors.py sensors.csv
    cida fit sensors.csv --label fault --index hour --periodic hour:24 --out runs/sensors
    cida predict runs/sensors sensors.csv --out predicted.csv
    python examples/sensors.py sensors.csv --score predicted.csv

The hall warms up by day, and what was hot at night is cool at noon. Faults are as frequent at any
hour; from 18 to 8 o'clock nobody looks, and the column ``fault`` is empty.
"""

import argparse
import csv
import math
import random

NAMES = ("hour", "temperature", "vibration", "current", "machine", "fault")
DAY = (8, 18)


def rows(count=4000, seed=1):
    """Each row with the truth."""
    draw = random.Random(seed)
    for _ in range(count):
        hour = round(draw.uniform(0, 24), 2) % 24
        fault = draw.random() < 0.4
        warm = 8 * math.cos((hour - 15) / 24 * 2 * math.pi)
        yield {
            "hour": hour,
            "temperature": round(20 + warm + draw.gauss(3 * fault, 2), 2),
            "vibration": round(1 + 0.03 * warm + draw.gauss(0.25 * fault, 0.2), 3),
            "current": round(draw.gauss(5, 1), 2),
            "machine": draw.choice("ABC"),
            "fault": "yes" if fault else "no",
        }


def by_day(row):
    return DAY[0] <= row["hour"] < DAY[1]


def write(path):
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, NAMES)
        table.writeheader()
        for row in rows():
            table.writerow(row if by_day(row) else {**row, "fault": ""})


def score(path):
    with open(path, newline="") as file:
        predicted = [line["prediction"] for line in csv.DictReader(file)]
    pairs = list(zip(rows(), predicted, strict=True))
    for name, wanted in (("by day, labelled", True), ("by night, not labelled", False)):
        right = [row["fault"] == guess for row, guess in pairs if by_day(row) == wanted]
        print(f"{name}: {sum(right) / len(right):.1%} of {len(right):,} rows are right")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--score", metavar="PREDICTED")
    given = parser.parse_args()
    if given.score is None:
        write(given.table)
    else:
        score(given.score)


if __name__ == "__main__":
    main()
