"""What the explainers of all kinds of models share: the model, its features and classes, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from ocf.explain.asking import Asking
from ocf.explain.saved import load, save
from ocf.features.space import FeatureSpace
from ocf.models.user_model import UserModel
from ocf.readers.nesting import name_of

#: Who explains rows of the kind of model.
A = TypeVar("A", bound=Asking[Any])


class ModelExplainer(Generic[A]):
    """The explainer of one model; see `ocf.Explainer` and `ocf.LinearExplainer`.

    Parameters
    ----------
    asking : Asking
        Who explains rows.
    """

    def __init__(self, asking: A) -> None:
        self.asking = asking

    @property
    def model(self) -> UserModel:
        """The user's own model."""
        return self.asking.model

    @property
    def space(self) -> FeatureSpace:
        """The features, in the user's units and words."""
        return self.asking.space

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class labels; empty for a regressor."""
        return self.asking.classes

    def __str__(self) -> str:
        return str(self.space)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of a {name_of(self.model.native)}: {len(self.space)} features>"

    def save(self, path: str | Path) -> None:
        """Write the explainer with all that is prepared, so that another process need not read and check the model.

        Parameters
        ----------
        path : str or Path
            Replaced if it is there.
        """
        save(self, path)

    @classmethod
    def load(cls, path: str | Path, *, trust_pickle: bool = False) -> Self:
        """The explainer that `save` wrote, with the same versions of ocf and of the libraries.

        Parameters
        ----------
        path : str or Path
        trust_pickle : bool
            The file holds a pickle, which runs whatever code it contains: only for files of known origin.
        """
        return load(cls, path, trust_pickle=trust_pickle)
