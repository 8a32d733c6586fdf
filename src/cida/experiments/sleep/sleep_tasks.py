"""The sleep experiments: Tables 2, 3 and 4 of the paper, task by task."""

from __future__ import annotations

from functools import partial

from cida.experiments.folder_files import load_published_scores
from cida.experiments.recipe_networks import SignalNetworks
from cida.experiments.sleep.cohorts import simulate_missing_cohorts, simulated_data_home
from cida.experiments.sleep.sleep_data import AgeRange, CohortSelection, draw_sleep_data
from cida.experiments.sleep.studies import INDEX_NAMES
from cida.experiments.spec import (
    PAPER_SETTINGS,
    MethodSettings,
    PreparationRequest,
    Preset,
    TaskSpec,
)
from cida.spaces import make_line_space

__all__ = ["SLEEP_CROSS", "SLEEP_INTRA", "SLEEP_MULTI", "prepare_sleep_data"]

SLEEP_METHODS = (
    "source-only",
    "source-only-along",
    "adda",
    "dann",
    "cdann",
    "mdd",
    "cua",
    "cida",
    "pcida",
    "histogram",
    "oracle",
)
INDEX_COUNTS = (1, 2, 4, 11)

SLEEP_PROTOCOLS = {
    "clean": "four fifths of the source people are trained on with labels, half of the target "
    "people without; all others are scored, 200 segments of a night",
    "development": "the same within the people of clean that are trained on; its scored ones are "
    "not touched",
}

# The paper's table of layers at a sixteenth of the width, for processors, and as it is. In ours all
# norms follow the index. Source-Only has none to follow it with where the target is, and keeps
# batch norm; what norms that go on from the source alone do has a line of its own.
SMALL_SIGNAL_NETWORKS = SignalNetworks(width=1 / 16, norm_follows_index=True)
SMALL_METHOD_NETWORKS = {"source-only": SignalNetworks(width=1 / 16)}
SLEEP_PAPER_NETWORKS = SignalNetworks()

# Chosen with the development protocol, on seeds from 100 up.
SLEEP_SETTINGS: MethodSettings = {
    "coordinates": "learned",
    "predictor_hidden": (64, 64),
    "batch_size": 128,
    "source_batch_size": 128,
    "learning_rate": 2e-3,
    "ema_decay": 0.99,
    "n_balance_bins": 12,
    "discriminator_steps": 1,
    "lambda_d": 0.2,
    "curriculum": 0.0,
    "steps": 400,
}
SLEEP_METHOD_SETTINGS: dict[str, MethodSettings] = {
    "oracle": {"source_batch_size": 256},  # as many segments a round as the others see
}

# The paper's networks and its settings, with nothing added.
SLEEP_PAPER_SETTINGS: MethodSettings = {
    **PAPER_SETTINGS,
    "predictor_hidden": (384, 384),
    "batch_size": 128,
    "source_batch_size": 128,
    "steps": 20_000,
}


def _sleep_task(
    name: str,
    title: str,
    source: CohortSelection,
    target: CohortSelection,
    index_names: tuple[str, ...] = ("age",),
) -> TaskSpec:
    space = {"space": make_line_space(len(index_names))}
    # A head's loss is a sum over the numbers of u: with more of them each has to count for less.
    share = {"lambda_d": SLEEP_SETTINGS["lambda_d"] / len(index_names)}
    return TaskSpec(
        name=name,
        title=title,
        draw_data=partial(draw_sleep_data, name, source, target, index_names),
        methods=SLEEP_METHODS,
        presets={
            "best": Preset(
                {**SLEEP_SETTINGS, **space, **share},
                SLEEP_METHOD_SETTINGS,
                SMALL_SIGNAL_NETWORKS,
                "clean",
                SMALL_METHOD_NETWORKS,
            ),
            "paper": Preset({**SLEEP_PAPER_SETTINGS, **space}, {}, SLEEP_PAPER_NETWORKS, "clean"),
        },
        protocols=SLEEP_PROTOCOLS,
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


def _intra_cohort_task(
    cohort: str, kind: str, source: tuple[AgeRange, ...], target: AgeRange
) -> TaskSpec:
    """A task of Table 2: one range of ages to another, in one cohort."""
    source_label = str(source[0]) if len(source) == 1 else "Outside"
    return _sleep_task(
        f"sleep-intra/{cohort}-{kind}",
        f"{cohort.upper()}@{source_label} → {cohort.upper()}@{target}",
        CohortSelection(cohort, source),
        CohortSelection(cohort, (target,)),
    )


SLEEP_INTRA = (
    _intra_cohort_task("shhs", "extrapolation", (AgeRange(44, 52, True),), AgeRange(52, 90)),
    _intra_cohort_task("mesa", "extrapolation", (AgeRange(54, 58, True),), AgeRange(58, 95)),
    _intra_cohort_task("sof", "extrapolation", (AgeRange(75, 82, True),), AgeRange(82, 90)),
    _intra_cohort_task(
        "shhs", "interpolation", (AgeRange(44, 52, True), AgeRange(75, 90)), AgeRange(52, 75)
    ),
    _intra_cohort_task(
        "mesa", "interpolation", (AgeRange(54, 58, True), AgeRange(75, 95)), AgeRange(58, 75)
    ),
    _intra_cohort_task(
        "sof", "interpolation", (AgeRange(72, 79, True), AgeRange(86, 90)), AgeRange(79, 86)
    ),
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


SLEEP_CROSS = (
    _cross_cohort_task("sof", "shhs"),
    _cross_cohort_task("sof", "mesa"),
    _cross_cohort_task("shhs", "mesa"),
    _cross_cohort_task("mesa", "shhs"),
    _cross_cohort_task("shhs", "sof"),
    _cross_cohort_task("mesa", "sof"),
)

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
