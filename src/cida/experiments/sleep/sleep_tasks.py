"""The sleep experiments: Tables 2, 3 and 4 of the paper, task by task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from torch import nn

from cida.experiments.folder_files import load_published_scores, load_recipes
from cida.experiments.sleep.sleep_data import (
    AgeRange,
    CohortSelection,
    draw_sleep_data,
    simulate_missing_cohorts,
    simulated_data_home,
)
from cida.experiments.sleep.studies import INDEX_NAMES
from cida.experiments.spec import PreparationRequest, TaskSpec
from cida.networks import SignalEncoder
from cida.spaces import Space, make_line_space
from cida.training import seeded

INDEX_COUNTS = (1, 2, 4, 11)


@dataclass(frozen=True)
class SignalNetworks:
    """A `SignalEncoder` with the blocks of the paper, so many times as wide."""

    width: float = 1.0
    norm_follows_index: bool = False

    def encoder(self, space: Space, seed: int) -> nn.Module:
        """The encoder for an index in this space, its weights drawn with the seed."""
        with seeded(seed):
            return SignalEncoder(space.embedding_width, self.width, self.norm_follows_index)


# The paper's table of layers at a sixteenth of the width, for processors, and as it is. In ours all
# norms follow the index. Source-Only has none to follow it with where the target is, and keeps
# batch norm; what norms that go on from the source alone do has a line of its own.
SMALL_SIGNAL_NETWORKS = SignalNetworks(width=1 / 16, norm_follows_index=True)
SMALL_METHOD_NETWORKS = {"source-only": SignalNetworks(width=1 / 16)}
RECIPES = load_recipes(__package__, {"best": SMALL_SIGNAL_NETWORKS, "paper": SignalNetworks()})


def _sleep_task(
    name: str,
    title: str,
    source: CohortSelection,
    target: CohortSelection,
    index_names: tuple[str, ...] = ("age",),
) -> TaskSpec:
    best, paper = RECIPES.presets["best"], RECIPES.presets["paper"]
    space = {"space": make_line_space(len(index_names))}
    # A head's loss is a sum over the numbers of u: with more of them each has to count for less.
    share = {"lambda_d": best.settings["lambda_d"] / len(index_names)}
    own = {**best.settings, **space, **share}
    presets = {
        "best": replace(best, settings=own, method_networks=SMALL_METHOD_NETWORKS),
        "paper": replace(paper, settings={**paper.settings, **space}),
    }
    return TaskSpec(
        name,
        partial(draw_sleep_data, name, source, target, index_names),
        *RECIPES._replace(presets=presets),
        title=title,
        n_histogram_bins=16,
        domain_classes=6,
        n_cua_stages=4,
        discriminator_hidden=(128, 128, 128, 128),  # five layers with the last, as in the paper
        published_scores=load_published_scores(__package__)[name],
    )


def prepare_sleep_data(request: PreparationRequest) -> None:
    """Simulates cohorts that are not there, and draws every task's data once.

    A store that is missing or too small is reported before the first run, not before the last.
    """
    if request.root is None:
        home = simulated_data_home()
        simulate_missing_cohorts(home, n_jobs=request.n_jobs, on_progress=request.on_progress)
    for task in request.tasks:
        task.draw_data(request.seed, request.protocol, request.root)


def _intra_cohort_task(cohort: str, kind: str, *edges: float) -> TaskSpec:
    """A task of Table 2: from one range of ages, or two around it, to another in one cohort."""
    first, target, *last = map(AgeRange, edges, edges[1:], (True, False, False))
    source_label = "Outside" if last else str(first)
    return _sleep_task(
        f"sleep-intra/{cohort}-{kind}",
        f"{cohort.upper()}@{source_label} → {cohort.upper()}@{target}",
        CohortSelection(cohort, (first, *last)),
        CohortSelection(cohort, (target,)),
    )


SLEEP_INTRA = (
    _intra_cohort_task("shhs", "extrapolation", 44, 52, 90),
    _intra_cohort_task("mesa", "extrapolation", 54, 58, 95),
    _intra_cohort_task("sof", "extrapolation", 75, 82, 90),
    _intra_cohort_task("shhs", "interpolation", 44, 52, 75, 90),
    _intra_cohort_task("mesa", "interpolation", 54, 58, 75, 95),
    _intra_cohort_task("sof", "interpolation", 72, 79, 86, 90),
)


def _cross_cohort_task(source: str, target: str) -> TaskSpec:
    """A task of Table 3: one whole cohort to another."""
    all_ages = (AgeRange(0, 130),)
    return _sleep_task(
        f"sleep-cross/{source}-{target}",
        f"{source.upper()} → {target.upper()}",
        CohortSelection(source, all_ages),
        CohortSelection(target, all_ages),
    )


COHORT_PAIRS = ("sof-shhs", "sof-mesa", "shhs-mesa", "mesa-shhs", "shhs-sof", "mesa-sof")
SLEEP_CROSS = tuple(_cross_cohort_task(*pair.split("-")) for pair in COHORT_PAIRS)

SLEEP_MULTI = tuple(
    _sleep_task(
        f"sleep-multi/{count:02d}",
        f"{count} {'index' if count == 1 else 'indices'}",
        CohortSelection("shhs", (AgeRange(44, 52, True),)),
        CohortSelection("shhs", (AgeRange(52, 90),)),
        INDEX_NAMES[:count],
    )
    for count in INDEX_COUNTS
)

SUITES = {"sleep-intra": SLEEP_INTRA, "sleep-cross": SLEEP_CROSS, "sleep-multi": SLEEP_MULTI}
