"""Real tables: NHANES, King County and SUPPORT2."""

from cida.experiments.folder_files import make_experiments
from cida.experiments.real_tables.table_tasks import KING_COUNTY, NHANES, SUPPORT2

TASKS = {"nhanes": NHANES, "king-county": KING_COUNTY, "support2": SUPPORT2}
EXPERIMENTS = make_experiments(__name__, TASKS, f"{__name__}.table_figures")
