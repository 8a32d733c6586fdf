"""
The certificate of two encodings
================================

Does an encoding z still tell the index u? Two encodings of the same points of Circle: x as it is,
and x in the moving frame of u, fitted to x and u alone. No label is read, and nothing is trained.
"""

import textwrap

import matplotlib.pyplot as plt
import torch

from cida import Line
from cida.certificate.certificate import certify
from cida.coordinates import MovingFrameLayer
from cida.datasets import make_circle

world, fresh = make_circle(seed=100), make_circle(seed=101)


def tensors(draw):
    u = torch.as_tensor(draw.u)[:, None]
    return torch.as_tensor(draw.x).float(), space.embed(u).float(), u


space = Line().fit(torch.as_tensor(world.u)[:, None])
x, index, _ = tensors(world)
frame = MovingFrameLayer(2).fit(x, index)

# %%
# The frame was fitted on one draw and is judged on another: what it was fitted on looks better than
# it is.

x, index, u = tensors(fresh)
encodings = {"x as it is": x.numpy(), "x in the moving frame": frame(x, index).numpy()}
certificates = {name: certify(space, z, u) for name, z in encodings.items()}

figure, axes = plt.subplots(1, 2, figsize=(10, 5.4), layout="constrained")
for axis, (name, z) in zip(axes, encodings.items(), strict=True):
    dots = axis.scatter(*z.T, c=fresh.u, s=4, cmap="viridis")
    verdict = textwrap.fill(certificates[name].summary()[0].split(". ")[0], 60)
    axis.set(title=name, aspect="equal")
    axis.set_xlabel(verdict, fontsize=8, loc="left", labelpad=10)
figure.colorbar(dots, ax=axes, label="index u", shrink=0.6)
plt.show()

# %%
# Beside the verdict stands what each probe found.

for name, certificate in certificates.items():
    print(name.upper(), *certificate.summary()[:4], "", sep="\n")

# %%
# It can refute alignment, never prove it. And an encoding that is free of u may still be wrong:
# discs that are turned against each other look just like these (see :doc:`../certificate`).
