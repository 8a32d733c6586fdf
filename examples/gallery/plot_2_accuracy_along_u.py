"""
Accuracy along the index
========================

Two moons turn by 180 degrees about the point between them, and labels end at 60. One number for the
whole target says little; ``score_by_index`` says where a model fails.
"""

import warnings

import matplotlib.pyplot as plt

from cida import CIDAClassifier, CidaWarning
from cida.datasets import make_rotating_moons

warnings.simplefilter("ignore", CidaWarning)
world = make_rotating_moons(n_samples=1500, seed=100)

models = {
    "Source-Only": CIDAClassifier(discriminator=None, steps=400, random_state=100),
    "CIDA (L2), x as it is": CIDAClassifier("l2", coordinates="raw", steps=400, random_state=100),
    "CIDAClassifier()": CIDAClassifier(steps=400, random_state=100),
}
for model in models.values():
    model.fit(world.x, world.training_labels, domain_index=world.u)
print(models["CIDAClassifier()"].plan_)

# %%
# The true labels of the target are used here to score, and nowhere else.

figure, axis = plt.subplots(figsize=(8, 4), layout="constrained")
axis.axvspan(world.u[world.source].min(), world.u[world.source].max(), color="#e8e8e8")
axis.text(30, 0.03, "source: labels", ha="center", fontsize=9)
for (name, model), mark in zip(models.items(), "sod", strict=True):
    cells = model.score_by_index(world.x, world.y, domain_index=world.u, n_bins=12)
    middle = [(cell.lo + cell.hi) / 2 for cell in cells]
    axis.plot(middle, [cell.score for cell in cells], marker=mark, ms=5, label=name)
axis.axhline(0.5, color="grey", lw=0.8, ls=":")
axis.set(xlabel="index u, degrees", ylabel="accuracy", ylim=(0, 1.03), xlim=(0, 180))
axis.legend(loc="lower left", bbox_to_anchor=(0.35, 0.08))
plt.show()
