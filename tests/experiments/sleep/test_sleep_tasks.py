"""The sleep experiments' recipes: the paper's numbers, and networks of the same depth for all."""

import re
from dataclasses import replace

import pytest
from torch import nn

from cida.experiments.sleep.sleep_tasks import (
    SLEEP_CROSS,
    SLEEP_INTRA,
    SLEEP_MULTI,
    SMALL_SIGNAL_NETWORKS,
)
from cida.experiments.spec import build_recipes

# Tables 2, 3 and 4 as in the paper's source, without captions and rules.
TABLE_2 = r"""
& Task  & SO  & ADDA & DANN & CDANN & MDD & CUA & CIDA & PCIDA \\
\multirow{3}{*}{\tabincell{c}{Domain\\Extrapolation}} & \emph{SHHS}@[44,52] $\rightarrow$ \emph{SHHS}@(52,90] & 77.4 & 78.0 & 77.1 & 77.5 & 77.7 & 77.4 & 79.8 & \textbf{80.6}  \\
 & \emph{MESA}@[54,58] $\rightarrow$ \emph{MESA}@(58,95]   & 80.1 & 80.7 & 79.9 & 80.4 & 80.3 & 80.1 & \textbf{82.7} & 82.5 \\
 & \emph{SOF}@[75,82] $\rightarrow$ \emph{SOF}@(82,90]   & 74.7 & 74.8 & 74.2 & 74.4 & 74.6 & 74.5 & \textbf{76.7} & \textbf{76.7} \\
\multirow{3}{*}{\tabincell{c}{Domain\\Interpolation}} & \emph{SHHS}@Outside $\rightarrow$ \emph{SHHS}@(52,75] & 82.4 & 81.7 & 82.5 & 82.3 & 82.5 & 82.4 & 82.2 & \textbf{83.7}  \\
& \emph{MESA}@Outside $\rightarrow$ \emph{MESA}@(58,75]   & 83.5 & 83.5 & 83.2 & 83.3 & 83.8 & 83.4 & 83.5 & \textbf{84.7} \\
& \emph{SOF}@Outside $\rightarrow$ \emph{SOF}@(79,86]   & 71.8 & 71.5 & 71.4 & 70.9 & 71.8 & 71.5 & 71.8 & \textbf{73.6}  \\
"""  # noqa: E501
TABLE_3 = r"""
Task  & Source-Only  & ADDA & DANN & CDANN & MDD & CUA & CIDA & PCIDA \\
 \emph{SOF} $\rightarrow$ \emph{SHHS}
 & 75.6 & {76.0} & 75.2 & 75.6 & 75.8 & 75.3 & 75.9 & \textbf{80.1}  \\
  \emph{SOF} $\rightarrow$ \emph{MESA}
 & 74.0 & 75.1 & 74.6 & {75.2} & 74.9 & 73.6 & 74.8 & \textbf{80.0}  \\
  \emph{SHHS} $\rightarrow$ \emph{MESA}
 & 82.8& 83.0 & 82.6 & 82.1 & 83.0 & 82.1 & {83.2} & \textbf{85.3}  \\
  \emph{MESA} $\rightarrow$ \emph{SHHS}
 & 80.7 & {81.8} & 80.9 & 80.9 & 81.2 & 81.0 & 80.8 & \textbf{83.4}  \\
 \emph{SHHS} $\rightarrow$ \emph{SOF}
 & 78.7 & 79.5 & 79.0 & 79.2 & 79.7 & 79.1 & \textbf{81.1} & {80.9}  \\
 \emph{MESA} $\rightarrow$ \emph{SOF}
 & 75.9 & 76.6 & 77.0 & 76.9 & 76.9 & 76.0 & \textbf{79.3} & {79.0}  \\
"""
TABLE_4 = r"""
\# Dimensions  & Source-Only  & CIDA & PCIDA \\
 1 & 77.4 & 79.8 & \textbf{80.6} \\
 2 & 77.6 & 81.0 & \textbf{81.1} \\
 4 & 77.7 & 81.2 & \textbf{81.3} \\
11 & 77.7 & \textbf{82.6} & \textbf{82.6} \\
"""

WITHOUT_ADVERSARY = ("source-only", "source-only-along", "oracle")


def read_table(tex):
    """``{task: {method: per cent}}`` of a table in LaTeX."""
    plain = re.sub(r"\\multirow.*?Domain\\\\\w+\}\}", "", tex).replace(r"$\rightarrow$", "→")
    plain = re.sub(r"\\(?:emph|textbf)|[{}#]|\\(?=#)", "", plain)
    head, *lines = ([cell.strip() for cell in line.split("&")] for line in plain.split(r"\\")[:-1])
    methods = ["source-only" if cell == "SO" else cell.lower() for cell in head]
    start = methods.index("source-only")
    return {
        " ".join(line[start - 1].split()): dict(
            zip(methods[start:], map(float, line[start:]), strict=True)
        )
        for line in lines
    }


def recorded(benchmarks, name_of):
    return {
        name_of(b): {m: round(100 * record.accuracy, 4) for m, record in b.published_scores.items()}
        for b in benchmarks
    }


@pytest.mark.parametrize(
    ("benchmarks", "tex", "number"),
    [(SLEEP_INTRA, TABLE_2, 2), (SLEEP_CROSS, TABLE_3, 3), (SLEEP_MULTI, TABLE_4, 4)],
)
def test_the_papers_numbers_are_those_of_its_tables(benchmarks, tex, number):
    table = read_table(tex)
    found = recorded(benchmarks, lambda b: b.title if number < 4 else b.title.split()[0])
    assert list(found) == list(table)
    assert found == table
    for benchmark in benchmarks:
        for record in benchmark.published_scores.values():
            assert record.scored_domains == "target"
            assert record.source_note == f"the paper's Table {number}, on the real recordings"


def test_a_task_is_named_after_its_experiment_and_all_have_the_same_methods():
    for experiment, benchmarks in {
        "sleep-intra": SLEEP_INTRA, "sleep-cross": SLEEP_CROSS, "sleep-multi": SLEEP_MULTI,
    }.items():  # fmt: skip
        assert {b.name.partition("/")[0] for b in benchmarks} == {experiment}
        assert len({b.name for b in benchmarks}) == len(benchmarks)
        assert len({b.methods for b in benchmarks}) == 1
        assert {tuple(b.presets) for b in benchmarks} == {("best", "paper")}
        assert {tuple(b.protocols) for b in benchmarks} == {("clean", "development")}


def layers(module):
    return sum(isinstance(part, nn.Linear) for part in module.modules())


@pytest.fixture(scope="module")
def few_rows(cohorts):
    """Training rows of a task, of one index and of eleven."""
    drawn = {
        b.name: b.draw_data(0, "clean", cohorts.stores) for b in (SLEEP_INTRA[2], SLEEP_MULTI[3])
    }
    return {
        name: (sample.training_dataset(), sample.training_dataset(oracle=True))
        for name, sample in drawn.items()
    }


@pytest.mark.parametrize("preset", ["best", "paper"])
@pytest.mark.parametrize("method", SLEEP_INTRA[0].methods)
@pytest.mark.parametrize("benchmark", [SLEEP_INTRA[2], SLEEP_MULTI[3]], ids=lambda b: b.name)
def test_the_discriminator_has_five_layers_and_the_predictor_three_in_every_method(
    few_rows, benchmark, method, preset
):
    recipe = build_recipes(benchmark, preset)[method].with_settings(steps=1)
    model = replace(recipe, networks=SMALL_SIGNAL_NETWORKS).build_model(seed=0)
    model.fit_dataset(few_rows[benchmark.name][recipe.oracle])
    assert layers(model.game_.predictor) == 3
    assert recipe.oracle == (method == "oracle")
    if method in WITHOUT_ADVERSARY:
        assert not hasattr(model.game_, "discriminator")
        return
    assert layers(model.game_.discriminator) == 5
    # In the paper each layer but the last has batch normalisation.
    normalised = [p for p in model.game_.discriminator.modules() if isinstance(p, nn.BatchNorm1d)]
    assert len(normalised) == (4 if preset == "paper" else 0)


def test_the_papers_preset_is_the_papers_and_nothing_added():
    for recipe in build_recipes(SLEEP_INTRA[0], "paper").values():
        model = recipe.build_model(seed=0)
        assert (model.learning_rate, model.lambda_d) == (1e-4, 2.0)
        assert (model.schedule, model.ema_decay, model.curriculum) == ("constant", 0.0, 0.0)
        assert (model.ceiling, model.n_balance_bins) == (False, 1)
        assert recipe.networks.width == 1


def test_all_norms_follow_the_index_but_those_of_source_only_and_of_the_paper():
    for benchmark in (*SLEEP_INTRA, *SLEEP_CROSS, *SLEEP_MULTI):
        best = build_recipes(benchmark, "best")
        assert [m for m, recipe in best.items() if not recipe.networks.norm_follows_index] == [
            "source-only"
        ]
        assert len({recipe.networks.width for recipe in best.values()}) == 1
        assert best["source-only"].settings == best["source-only-along"].settings
        assert not any(
            recipe.networks.norm_follows_index
            for recipe in build_recipes(benchmark, "paper").values()
        )
