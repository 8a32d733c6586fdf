"""The moment ladder: which discriminator head aligns what."""

from cida.experiments.folder_files import load_text
from cida.experiments.moments.ladder_tasks import MOMENTS
from cida.experiments.spec import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (
    Experiment(
        "moments",
        MOMENTS,
        load_text(__name__, "moments"),
        figures_module="cida.experiments.score_figures",
    ),
)
