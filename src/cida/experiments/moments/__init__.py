"""The moment ladder: which discriminator head aligns what."""

from cida.experiments.folder_files import make_experiments
from cida.experiments.moments.ladder_tasks import MOMENTS

EXPERIMENTS = make_experiments(__name__, {"moments": MOMENTS}, "cida.experiments.figures")
