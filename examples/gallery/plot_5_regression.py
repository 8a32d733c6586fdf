"""
A regression that drifts
========================

The inputs are carried along an arc, and what is carried tells a number. Labels end at u = 4 of 10.
"""

import warnings

import matplotlib.pyplot as plt

from cida import CIDARegressor, CidaWarning
from cida.datasets import make_drifting_regression

warnings.simplefilter("ignore", CidaWarning)
world = make_drifting_regression(n_samples=1500, seed=100)
target = ~world.source

models = {
    "Source-Only": CIDARegressor(discriminator=None, steps=400, random_state=100),
    "CIDARegressor()": CIDARegressor(steps=400, random_state=100),
}
for name, model in models.items():
    model.fit(world.x, world.training_labels, domain_index=world.u)
    r2 = model.score(world.x[target], world.y[target], domain_index=world.u[target])
    print(f"{name}: R² {r2:.2f} on the target")

# %%
# Predictions against the truth, each point by its index, and the error along u.

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
low, high = world.y.min() - 0.5, world.y.max() + 0.5
for axis, (name, model) in zip(axes, models.items(), strict=False):
    predicted = model.predict(world.x, domain_index=world.u)
    dots = axis.scatter(world.y, predicted, c=world.u, s=5, cmap="viridis")
    axis.plot([low, high], [low, high], "k--", lw=0.8)
    axis.set(title=name, xlabel="truth", ylabel="prediction", xlim=(low, high), ylim=(low, high))
figure.colorbar(dots, ax=axes[1], label="index u", shrink=0.8)
axes[2].axvspan(0, world.u[world.source].max(), color="#e8e8e8")
for name, model in models.items():
    cells = model.score_by_index(world.x, world.y, domain_index=world.u)
    middle = [(cell.lo + cell.hi) / 2 for cell in cells]
    axes[2].plot(middle, [cell.score for cell in cells], marker="o", ms=4, label=name)
axes[2].set(
    title="along the index", xlabel="index u", ylabel="root mean squared error", xlim=(0, 10)
)
axes[2].legend()
plt.show()
