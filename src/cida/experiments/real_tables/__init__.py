"""Real tables: NHANES, King County and SUPPORT2."""

from cida.experiments.folder_files import load_text
from cida.experiments.real_tables.table_tasks import KING_COUNTY, NHANES, SUPPORT2
from cida.experiments.spec import Experiment

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = tuple(
    Experiment(name, tasks, load_text(__name__, name), figures_module=f"{__name__}.table_figures")
    for name, tasks in (("nhanes", NHANES), ("king-county", KING_COUNTY), ("support2", SUPPORT2))
)
