"""Which of many runs each validator keeps, without target labels."""

from cida.experiments.folder_files import load_text
from cida.experiments.selection.model_bank import SELECTION
from cida.experiments.selection.validator_ranking import analyze_validators
from cida.experiments.spec import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    Experiment(
        "selection",
        SELECTION,
        load_text(__name__, "selection"),
        figures_module=f"{__name__}.selection_figures",
        analyze=analyze_validators,
    ),
)
