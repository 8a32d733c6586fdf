"""A mixture of von Mises distributions."""

from __future__ import annotations

from torch import Tensor, nn

from cida.discriminators.mixture import ComponentParams, Mixture
from cida.discriminators.von_mises import fit_von_mises, von_mises_loss

__all__ = ["VonMisesMixture"]


class VonMisesMixture(Mixture):
    """``L_d = -log sum_k w_k(z) exp(-L_k(z))``, each ``L_k`` the loss of a `VonMises` head.

    Section 3.2 of the paper on a circle: several directions at once, such as morning and evening,
    which a single von Mises distribution cannot distinguish from no direction at all. Columns on a
    `Line` have the Gaussian's mean and variance in each component. With K = 1 it is the `VonMises`
    head; with enough components it aligns all moments of p(u|z). The ceiling has no closed form:
    the best constant mixture is fitted by expectation-maximization.

    Parameters
    ----------
    components : int, default 3
        Number of components K.
    body : torch.nn.Module, optional
        Your own module from z to features; by default an MLP with the widths of ``hidden``.
    hidden : tuple of int, default (128, 128, 128)
        Widths of the default body.
    """

    def __init__(
        self,
        components: int = 3,
        body: nn.Module | None = None,
        hidden: tuple[int, ...] = (128, 128, 128),
    ) -> None:
        super().__init__(components, body, hidden)

    @property
    def component_width(self) -> int:
        return 2 * self.built_space.width

    def unpack_components(self, packed_params: Tensor) -> ComponentParams:
        return (packed_params.reshape(len(packed_params), self.components, -1, 2),)

    def pack_components(self, components: ComponentParams) -> Tensor:
        return components[0].flatten()

    def log_densities(self, points: Tensor, components: ComponentParams) -> Tensor:
        return -von_mises_loss(self.built_space, components[0], points[:, None, :])

    def fit_components(self, points: Tensor, responsibilities: Tensor) -> ComponentParams:
        return (fit_von_mises(self.built_space, points, responsibilities),)
