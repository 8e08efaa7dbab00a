"""Shipped definitions in the language that users write: functions that return a `Model`, each in a file of its name.

`BinaryFeatures`, `DiffusionTree`, `GaussianMixture` and `NSFA`, estimators, load scikit-learn (the extra `sklearn`)
when they are first asked for; `factor_analysis`, `sparse_components`, `ridge`, `lasso` and `lars` are plain functions
of tables, which load what they need then too.
"""

from typing import TYPE_CHECKING, Any

from .diffusion_tree import diffusion_tree
from .gamma_estimation import gamma_estimation
from .gaussian_mixture import gaussian_mixture
from .heteroskedastic_gp import heteroskedastic_gp
from .heteroskedastic_regression import heteroskedastic_regression
from .indian_buffet import indian_buffet
from .logistic_regression import logistic_regression
from .mixture import mixture
from .multinomial_probit import multinomial_probit
from .nsfa import nsfa
from .ordinal_regression import ordinal_regression
from .poisson_regression import poisson_regression
from .probit_regression import probit_regression
from .skills import skills
from .softmax_regression import softmax_regression

if TYPE_CHECKING:
    from .buffet.estimator import BinaryFeatures as BinaryFeatures
    from .games.estimator import Skills as Skills
    from .mixtures.estimator import GaussianMixture as GaussianMixture
    from .sparse.estimator import NSFA as NSFA
    from .sparse.factor_analysis import factor_analysis as factor_analysis
    from .sparse.penalised import lars as lars
    from .sparse.penalised import lasso as lasso
    from .sparse.penalised import ridge as ridge
    from .sparse.sparse_components import sparse_components as sparse_components
    from .trees.estimator import DiffusionTree as DiffusionTree

__all__ = [
    "diffusion_tree",
    "gamma_estimation",
    "gaussian_mixture",
    "heteroskedastic_gp",
    "heteroskedastic_regression",
    "indian_buffet",
    "logistic_regression",
    "mixture",
    "multinomial_probit",
    "nsfa",
    "ordinal_regression",
    "poisson_regression",
    "probit_regression",
    "skills",
    "softmax_regression",
]


def __getattr__(name: str) -> Any:
    if name == "BinaryFeatures":
        from .buffet.estimator import BinaryFeatures

        return BinaryFeatures
    if name == "DiffusionTree":
        from .trees.estimator import DiffusionTree

        return DiffusionTree
    if name == "GaussianMixture":
        from .mixtures.estimator import GaussianMixture

        return GaussianMixture
    if name == "Skills":
        from .games.estimator import Skills

        return Skills
    if name == "NSFA":
        from .sparse.estimator import NSFA

        return NSFA
    if name == "factor_analysis":
        from .sparse.factor_analysis import factor_analysis

        return factor_analysis
    if name == "sparse_components":
        from .sparse.sparse_components import sparse_components

        return sparse_components
    if name in ("lars", "lasso", "ridge"):
        from .sparse import penalised

        return getattr(penalised, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
