"""
The Circle and its moving boundary
==================================

Labels exist in 6 of 30 domains, on the right. The boundary turns with the index, so what is learned
there is wrong on the left, unless the model follows.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from cida import CIDAClassifier, CidaWarning
from cida.datasets import make_circle

warnings.simplefilter("ignore", CidaWarning)  # the doctor finds what the pictures show
world = make_circle(seed=100)
target = ~world.source

# %%
# Two models on the same rows. The first sees source rows alone; the second is the default, which
# adapts to the rows without labels.

models = {
    "Source-Only": CIDAClassifier(discriminator=None, steps=500, random_state=100),
    "CIDAClassifier()": CIDAClassifier(steps=500, random_state=100),
}
for name, model in models.items():
    model.fit(world.x, world.training_labels, domain_index=world.u)
    score = model.score(world.x[target], world.y[target], domain_index=world.u[target])
    print(f"{name}: {score:.1%} of the target rows are right")

# %%
# Each place is painted as the model predicts it, for the index of the nearest domain. The dashed
# line is the truth.

mean, deviation = world.scaling


def on_circle(radius, angle):
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)


angle, radius = np.linspace(-0.2, np.pi + 0.2, 361), np.linspace(3.9, 6.1, 61)
corners = on_circle(*np.meshgrid(radius, angle))
between = np.meshgrid((radius[1:] + radius[:-1]) / 2, (angle[1:] + angle[:-1]) / 2)
places = (on_circle(*between) - mean) / deviation
u_there = np.round(np.clip(between[1] / np.pi, 0, 1) * 29) / 29
points = world.x * deviation + mean
shades, inks = ListedColormap(["#cfe3f2", "#f9dcc4"]), np.array(["#1f5f8b", "#c2410c"])

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    painted = model.predict(places.reshape(-1, 2), domain_index=u_there.ravel())
    axis.pcolormesh(*np.moveaxis(corners, -1, 0), painted.reshape(u_there.shape), cmap=shades)
    axis.plot(*on_circle(5, angle).T, "k--", lw=1)
    axis.scatter(*points[target].T, s=2, c=inks[world.y[target].astype(int)], alpha=0.35, lw=0)
    axis.scatter(*points[world.source].T, s=9, c=inks[world.y[world.source].astype(int)], lw=0)
    axis.set(title=name, aspect="equal", xticks=[], yticks=[])
    axis.text(0, 0.8, "large points have labels,\nsmall ones have none", ha="center", fontsize=9)
plt.show()
