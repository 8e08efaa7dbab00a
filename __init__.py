"""cavity: a factor-graph compiler for Bayesian models on JAX.

Declare a model as a factor graph in a small language, call `infer()`, read posterior marginals.
"""

from .compiler.functions import all, any, dot, exp, log, logistic, probit, softmax, sum
from .compiler.language import Model
from .compiler.methods import ncvmp, power
from .engine.infer import compile, explain, infer
from .engine.log_density import LogDensity, log_density
from .engine.marginal import Marginal
from .engine.posterior import Posterior
from .engine.program import Program
from .engine.store import load
from .factors import kernels
from .factors.bernoulli import bernoulli
from .factors.beta import beta
from .factors.categorical import categorical
from .factors.dirichlet import dirichlet
from .factors.domains import boolean, category, count, index, matrix, posdef, positive, real, simplex, unit, vector
from .factors.errors import CavityError, DataError, ModelError, UnsupportedError
from .factors.factor import switch
from .factors.gamma import gamma
from .factors.gaussian import gaussian
from .factors.gaussian_process import gaussian_process
from .factors.poisson import poisson
from .factors.vector_gaussian import vector_gaussian
from .factors.wishart import wishart

__version__ = "0.1.0"

__all__ = [
    "CavityError", "DataError", "LogDensity", "Marginal", "Model", "ModelError", "Posterior", "Program",
    "UnsupportedError",
    "all", "any", "bernoulli", "beta", "boolean", "categorical", "category", "compile", "count", "dirichlet", "dot", "exp", "explain",
    "gamma", "gaussian", "gaussian_process", "index", "infer", "kernels", "load", "log", "log_density", "logistic",
    "ncvmp", "poisson", "posdef", "positive", "power", "probit", "real", "simplex", "softmax", "sum", "switch", "unit", "vector", "vector_gaussian", "wishart",
]  # fmt: skip
