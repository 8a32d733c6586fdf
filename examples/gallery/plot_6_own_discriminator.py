"""
A discriminator of your own
===========================

A head with long tails, for an index with stray values: Laplace's density in place of PCIDA's
Gaussian. A head says how many numbers describe its density, how it is scored, and what the best
one is that ignores z.
"""

import warnings

import matplotlib.pyplot as plt
import torch
from torch import Tensor, nn

from cida import L1, CIDAClassifier, CidaWarning, Discriminator
from cida.check import check
from cida.datasets import make_ladder

LEAST = 0.01  # of a width, so that no likelihood runs away


class Laplace(Discriminator):
    """``L_d = |D_m(z) - u| / D_b(z) + log D_b(z)``: a median and a width for each column."""

    @property
    def params_width(self) -> int:
        return 2 * self.embedding_width

    def score(self, params: Tensor, target: Tensor) -> Tensor:
        middle, raw = params.chunk(2, dim=1)
        width = nn.functional.softplus(raw) + LEAST
        return ((middle - target).abs() / width + width.log()).sum(1)

    def marginal_params(self, u: Tensor, weights: Tensor) -> Tensor:
        middle = L1.marginal_params(self, u, weights)  # the weighted median of each column
        width = weights @ (self.target(u).to(weights.dtype) - middle).abs()
        return torch.cat([middle, (width - LEAST).clamp(min=1e-6).expm1().log()])


# %%
# Does it do its job? The same as ``cida check module:Laplace``.

findings = check(Laplace)
print(f"{sum(finding.passed for finding in findings)} of {len(findings)} checks passed")

# %%
# In the game it is passed as an instance. On this rung of the moment ladder a shortcut is right in
# the source and leaves its mark on the variance of p(u|z) alone. L2 does not see that; a
# density with a width does.

warnings.simplefilter("ignore", CidaWarning)
world = make_ladder("variance", n_samples=2000, seed=100)
models = {
    "L2": CIDAClassifier("l2", coordinates="raw", steps=500, random_state=100),
    "Laplace": CIDAClassifier(Laplace(), coordinates="raw", steps=500, random_state=100),
}
for model in models.values():
    model.set_params(curriculum=0.0).fit(world.x, world.training_labels, domain_index=world.u)

# %%
# On the left how far our head is below its ceiling, the loss that no encoder can force it above:
# at 0 nothing of u is left that it could see.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
events = [event for event in models["Laplace"].history_ if "discriminator" in event.losses]
below = [event.ceilings["discriminator"] - event.losses["discriminator"] for event in events]
left.plot([event.step for event in events], below)
left.axhline(0, color="k", ls="--", lw=1)
left.set(title="Laplace in training", xlabel="step", ylabel="nats below its ceiling")
source = world.u[world.source]
right.axvspan(source.min(), source.max(), color="#e8e8e8", label="source: labels")
for name, model in models.items():
    cells = model.score_by_index(world.x, world.y, domain_index=world.u)
    middle = [(cell.lo + cell.hi) / 2 for cell in cells]
    right.plot(middle, [cell.score for cell in cells], marker="o", ms=4, label=name)
right.set(title="along the index", xlabel="index u", ylabel="accuracy", ylim=(0, 1.03))
right.legend()
plt.show()
