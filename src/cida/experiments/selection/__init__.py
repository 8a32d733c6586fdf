"""Which of many runs each validator keeps, without target labels."""

from collections.abc import Mapping

from cida.experiments.folder_files import make_experiments
from cida.experiments.selection.model_bank import make_selection_tasks
from cida.experiments.selection.validator_ranking import analyze_validators
from cida.experiments.spec import Experiment, TaskSpec


def derive_experiments(tasks: Mapping[str, TaskSpec]) -> tuple[Experiment, ...]:
    """The experiment, on data of others among these tasks."""
    own, figures = {"selection": make_selection_tasks(tasks)}, f"{__name__}.selection_figures"
    return make_experiments(__name__, own, figures, analyze=analyze_validators)
