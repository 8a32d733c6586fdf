import os

# One thread: tests run side by side, and threads waiting for a busy core cost more than they give.
os.environ["OMP_NUM_THREADS"] = "1"

import torch

torch.set_num_threads(1)
