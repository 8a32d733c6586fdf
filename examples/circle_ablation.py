"""Which parts of the game carry the result on Circle? One change at a time.

    python examples/circle_ablation.py --seeds 3 --first-seed 100

Each line is the histogram head, on its own (E(x), no moving frame), with one setting changed;
accuracy on the 24 target domains.
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from statistics import mean

import numpy as np
import torch

from cida import CIDAClassifier
from cida.datasets import circle

CHANGES = {
    "the game on its own": {},
    "in the moving frame (the default)": {"index_in_encoder": "frame"},
    "no ceiling": {"ceiling": False},
    "no weight averaging": {"averaging": 0.0},
    "no ceiling, no weight averaging": {"ceiling": False, "averaging": 0.0},
    "constant learning rate": {"schedule": "constant"},
    "constant learning rate, no weight averaging": {"schedule": "constant", "averaging": 0.0},
    "E(x, u) in place of E(x)": {"index_in_encoder": True},
    "curriculum over 70 % of the steps": {"curriculum": 0.7},
    "1 discriminator step": {"discriminator_steps": 1},
    "batches of 256": {"batch_size": 256},
}


def target_accuracy(job: tuple[str, int]) -> float:
    torch.set_num_threads(1)
    name, seed = job
    world = circle(seed=seed)
    settings = {"index_in_encoder": False, **CHANGES[name]}
    model = CIDAClassifier(**settings, random_state=seed)
    model.fit(world.x, world.training_labels, domain_index=world.u)
    right = model.predict(world.x, domain_index=world.u) == world.y
    return 100 * float(np.mean(right[~world.source]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", choices=CHANGES, default=list(CHANGES))
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    jobs = [(name, seed) for name in arguments.only for seed in seeds]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        results = dict(zip(jobs, pool.map(target_accuracy, jobs), strict=True))
    print("| change | target % | worst seed |\n|---|---|---|")
    for name in arguments.only:
        scores = [results[name, seed] for seed in seeds]
        print(f"| {name} | {mean(scores):.1f} | {min(scores):.1f} |")


if __name__ == "__main__":
    main()
