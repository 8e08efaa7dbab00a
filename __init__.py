"""cavity: a factor-graph compiler for Bayesian models on JAX.

Declare a model as a factor graph in a small language, call `infer()`, read posterior marginals.
"""

from .compiler.functions import (
    all,
    any,
    dot,
    element,
    exp,
    log,
    logistic,
    max,
    min,
    probit,
    softmax,
    stack,
    subvector,
    sum,
)
from .compiler.language import Model
from .compiler.methods import ncvmp, power
from .engine.gradient import evidence_gradient
from .engine.infer import compile, explain, infer
from .engine.learn import Learned, learn
from .engine.log_density import LogDensity, log_density
from .engine.marginal import Marginal
from .engine.posterior import Posterior
from .engine.program import Program
from .engine.store import load
from .factors import kernels
from .factors.bernoulli import bernoulli
from .factors.beta import beta
from .factors.binomial import binomial
from .factors.categorical import categorical
from .factors.dirichlet import dirichlet
from .factors.domains import boolean, category, count, index, matrix, posdef, positive, real, simplex, unit, vector
from .factors.errors import CavityError, DataError, ModelError, UnsupportedError
from .factors.factor import switch
from .factors.gamma import gamma
from .factors.gaussian import gaussian
from .factors.gaussian_process import gaussian_process
from .factors.half_cauchy import half_cauchy
from .factors.half_normal import half_normal
from .factors.interval import between
from .factors.laplace import laplace
from .factors.log_normal import log_normal
from .factors.multinomial import multinomial
from .factors.negative_binomial import negative_binomial
from .factors.ordered import ordered_logistic, ordered_probit
from .factors.poisson import poisson
from .factors.spike_and_slab import spike_and_slab
from .factors.student_t import student_t
from .factors.truncated_gamma import truncated_gamma
from .factors.truncated_gaussian import truncated_gaussian
from .factors.uniform import discrete_uniform, uniform
from .factors.user import factor
from .factors.vector_gaussian import vector_gaussian
from .factors.wishart import wishart

__version__ = "0.5.0"

__all__ = [
    "CavityError", "DataError", "Learned", "LogDensity", "Marginal", "Model", "ModelError", "Posterior", "Program",
    "UnsupportedError", "all", "any", "bernoulli", "beta", "between", "binomial", "boolean", "categorical",
    "category", "compile", "count", "dirichlet", "discrete_uniform", "dot", "element", "evidence_gradient", "exp",
    "explain", "factor", "gamma", "gaussian", "gaussian_process", "half_cauchy", "half_normal", "index", "infer",
    "kernels", "laplace", "learn", "load", "log", "log_density", "log_normal", "logistic", "matrix", "max", "min",
    "multinomial", "ncvmp", "negative_binomial", "ordered_logistic", "ordered_probit", "poisson", "posdef",
    "positive", "power", "probit", "real", "simplex", "softmax", "spike_and_slab", "stack", "student_t",
    "subvector", "sum", "switch", "truncated_gamma", "truncated_gaussian", "uniform", "unit", "vector",
    "vector_gaussian", "wishart",
]  # fmt: skip
