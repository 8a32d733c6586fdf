"""How often the alignment certificate is right, and how long it takes.

    python examples/certificate_power.py
    python examples/certificate_power.py --time

Independent z and u: how often it finds a dependence (at most 5 % is promised). Then a dependence
that explains 2 % of V[u] is planted: in the mean of u, by a line; in its variance (2 % of the
variance of the squared deviations); in its mean by the square, or by two waves, of a direction of z
with no line left. The direction is any one of an even z, one column of it, or lies as in fitted
encodings, whose k-th principal component has a variance of 1/k^2, in proportion to these. Last,
the size that the certificate itself states as seen 95 % of the time. Percent found.
"""

import argparse
import math
import time

import numpy as np
import torch

from cida.certificate import certify
from cida.certificate.cellwise import assign_cells
from cida.certificate.dependence_tests import ALPHA, BOOSTING_ALPHA
from cida.certificate.permutation_tests import run_permutation_tests
from cida.certificate.power import min_detectable_share
from cida.certificate.probes import fit_boosted_probe
from cida.certificate.projections import Strata
from cida.spaces import Line

WIDTHS = (2, 8, 32)
PLACES = ("any direction", "one column", "as in encodings")
KINDS = ("mean", "variance", "square", "waves")


def unit(values):
    return (values - values.mean()) / values.std()


def encodings(rng, rows, width, place):
    """z, and the direction of it that is planted in."""
    z = rng.normal(size=(rows, width))
    if place == "one column":
        return z, unit(z[:, 0])
    if place == "as in encodings":
        turn, _ = np.linalg.qr(rng.normal(size=(width, width)))
        z = z / np.arange(1, width + 1) @ turn
    return z, unit(z @ rng.normal(size=width))


def index(rng, along, kind, share):
    """u with the planted share, and noise that is normal."""
    noise = rng.normal(size=len(along))
    if kind == "variance":
        slope = math.sqrt(2 * share / (1 - 3 * share))
        return np.sqrt(np.maximum(1 + slope * along, 0.01)) * noise
    shapes = {"mean": along, "square": along**2, "waves": np.sin(2 * along)}
    shape = shapes[kind]
    if kind != "mean":
        shape = shape - along * (shape @ along) / len(along)
    return math.sqrt(share) * unit(shape) + math.sqrt(1 - share) * noise


def tested(z, u, seed):
    u = torch.from_numpy(u)[:, None]
    space = Line().fit(u)
    z, e = (z - z.mean(0)) / z.std(0), space.embed(u).numpy()
    cells = assign_cells(space, u).cell_of_row
    level = ALPHA - BOOSTING_ALPHA
    return z, e, run_permutation_tests(z, e, Strata.single(len(z)), cells, alpha=level, seed=seed)


def found(z, u, seed):
    """The verdict of the certificate, without the figures beside it."""
    z, e, result = tested(z, u, seed)
    if result.p_value <= ALPHA - BOOSTING_ALPHA + 1e-12:
        return True
    return fit_boosted_probe(z, e, seed).p_value <= BOOSTING_ALPHA


def alarms(arguments, width):
    count = 0
    for number in range(-(-arguments.independent // len(WIDTHS))):
        rng = np.random.default_rng([arguments.first_seed, number, width])
        z = rng.normal(size=(arguments.rows, width))
        count += found(z, rng.normal(size=arguments.rows), number)
    return count


def detections(arguments, width, place, kind, share=0.02):
    count = 0
    for number in range(arguments.repetitions):
        rng = np.random.default_rng([arguments.first_seed, number, width, 1])
        z, along = encodings(rng, arguments.rows, width, place)
        count += found(z, index(rng, along, kind, share), number)
    return count / arguments.repetitions


def stated(arguments, width):
    rng = np.random.default_rng([arguments.first_seed, width])
    z = rng.normal(size=(arguments.rows, width))
    _, _, result = tested(z, rng.normal(size=arguments.rows), 0)
    return min_detectable_share(
        result.tests["mean"].critical_value, arguments.rows, result.n_components, 1
    )


def seconds(rows, width=32):
    rng = np.random.default_rng(100)
    z, u = rng.normal(size=(rows, width)), torch.from_numpy(rng.normal(size=(rows, 1)))
    space, classes = Line().fit(u), (z[:, 0] > 0).astype(int)
    started, busy = time.perf_counter(), time.process_time()
    certify(space, z, u, classes)
    return time.perf_counter() - started, time.process_time() - busy


def row(name, values):
    print(f"| {name} | " + " | ".join(values) + " |", flush=True)


def measure(arguments):
    row(f"% found, {arguments.rows} rows", [f"z of {width}" for width in WIDTHS])
    print("|---|" + "---|" * len(WIDTHS))
    each = -(-arguments.independent // len(WIDTHS))
    counts = [alarms(arguments, width) for width in WIDTHS]
    row("independent", [f"{100 * count / each:.1f}" for count in counts])
    for place in PLACES:
        for kind in KINDS:
            shares = [detections(arguments, width, place, kind) for width in WIDTHS]
            row(f"{kind}, {place}", [f"{100 * share:.0f}" for share in shares])
    sizes = [stated(arguments, width) for width in WIDTHS]
    shares = [
        detections(arguments, width, "any direction", "mean", size)
        for width, size in zip(WIDTHS, sizes, strict=True)
    ]
    told = [f"{100 * s:.0f} of {100 * size:.1f} %" for s, size in zip(shares, sizes, strict=True)]
    row("mean, any direction, at the size stated", told)
    total = 100 * sum(counts) / (each * len(WIDTHS))
    print(f"\nFalse alarms in all: {total:.1f} % of {each * len(WIDTHS)}.")


def tell_seconds():
    seconds(200)  # what is done once, as imports
    wall, busy = seconds(10_000)
    print(f"A whole certificate of 10,000 rows: {wall:.1f} s, {busy:.1f} s of one processor.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--independent", type=int, default=400, help="repetitions, over widths")
    parser.add_argument("--repetitions", type=int, default=60, help="of each planted dependence")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--time", action="store_true", help="how long it takes, and no more")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if not arguments.time:
        measure(arguments)
    tell_seconds()


if __name__ == "__main__":
    main()
