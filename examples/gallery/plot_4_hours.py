"""
Expected accuracy against the truth, round the clock
====================================================

Classes swing once a day, and 24 o'clock is 0 again. Labels exist from 9 to 17. How right is the
model by night? ``expected_score`` says so without a label from there; here the truth is known.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from cida import CIDAClassifier, CidaWarning
from cida.datasets import make_hours

world = make_hours(n_samples=1500, seed=100)
model = CIDAClassifier(steps=400, random_state=100)
model.fit(world.x, world.training_labels, domain_index=world.u)
print(model.space_)  # nobody said that u is a circle

# %%
# A second training, without the source range nearest to the target, checks how sure the model may
# be. Beyond the range that could be checked it warns.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", CidaWarning)
    cells = model.expected_score(world.x, world.training_labels, domain_index=world.u)
truth = model.score_by_index(
    world.x[~world.source], world.y[~world.source], domain_index=world.u[~world.source], n_bins=10
)

figure, axis = plt.subplots(
    figsize=(6, 6), subplot_kw={"projection": "polar"}, layout="constrained"
)
axis.set_theta_zero_location("N")
axis.set_theta_direction(-1)
turn = 2 * np.pi / 24
axis.bar(13 * turn, 1, width=8 * turn, color="#e8e8e8", label="source: labels")
middle = np.array([(cell.lo + cell.hi) / 2 for cell in cells]) * turn
score = np.array([cell.score for cell in cells])
reach = [score - [cell.low for cell in cells], [cell.high for cell in cells] - score]
axis.errorbar(middle, score, yerr=reach, fmt="o", capsize=3, label="expected, with its interval")
there = [(cell.lo + cell.hi) / 2 * turn for cell in truth]
axis.plot(there, [cell.score for cell in truth], "kx", label="truth")
axis.set_xticks(np.arange(0, 24, 3) * turn, [f"{hour} h" for hour in range(0, 24, 3)])
axis.set_rlim(0, 1.05)
axis.set_rticks([0.5, 1.0])
figure.legend(loc="outside lower center", ncols=3, frameon=False)
plt.show()
