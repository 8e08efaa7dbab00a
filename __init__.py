"""cavity: a factor-graph compiler for Bayesian models on JAX.

Declare a model as a factor graph in a small language, call `infer()`, read posterior marginals.
"""

import importlib
from typing import TYPE_CHECKING

from .compiler.language.functions import (
    abs,
    all,
    any,
    cos,
    covariance,
    cumprod,
    dot,
    element,
    exp,
    log,
    logistic,
    max,
    min,
    probit,
    sin,
    softmax,
    sqrt,
    stack,
    subvector,
    sum,
    tanh,
    where,
)
from .compiler.language.model import Model
from .compiler.language.tables import table
from .compiler.methods import ncvmp, power
from .compiler.schedules import Schedule
from .factors import kernels
from .factors.domains import boolean, category, count, index, matrix, posdef, positive, real, simplex, unit, vector
from .factors.errors import CallError, CavityError, CavityWarning, DataError, LostError, ModelError, UnsupportedError
from .factors.factor import mixture, switch
from .factors.user import factor
from .factors.vectors.ordered import ordered

# isort: split
# The vocabulary, made by docs/make_front_door.py: begin
from .factors.combined.censored import censored
from .factors.combined.truncated import truncated
from .factors.discrete.bernoulli import bernoulli
from .factors.discrete.binomial import binomial
from .factors.discrete.categorical import categorical
from .factors.discrete.multinomial import multinomial
from .factors.discrete.negative_binomial import negative_binomial
from .factors.discrete.ordered import ordered_logistic, ordered_probit
from .factors.discrete.point import point
from .factors.discrete.poisson import poisson
from .factors.positive.beta import beta
from .factors.positive.exponential import exponential
from .factors.positive.gamma import gamma
from .factors.positive.half_cauchy import half_cauchy
from .factors.positive.half_normal import half_normal
from .factors.positive.half_student_t import half_student_t
from .factors.positive.inverse_gamma import inverse_gamma
from .factors.positive.inverse_gaussian import inverse_gaussian
from .factors.positive.log_normal import log_normal
from .factors.positive.logit_normal import logit_normal
from .factors.positive.pareto import pareto
from .factors.positive.truncated_gamma import truncated_gamma
from .factors.positive.weibull import weibull
from .factors.real.cauchy import cauchy
from .factors.real.flat import flat
from .factors.real.gaussian import gaussian
from .factors.real.gaussian_process import gaussian_process
from .factors.real.interval import between
from .factors.real.laplace import laplace
from .factors.real.lkj import lkj
from .factors.real.skew_normal import skew_normal
from .factors.real.spike_and_slab import spike_and_slab
from .factors.real.student_t import student_t
from .factors.real.truncated_gaussian import truncated_gaussian
from .factors.real.uniform import discrete_uniform, uniform
from .factors.real.von_mises import von_mises
from .factors.vectors.dirichlet import dirichlet
from .factors.vectors.dirichlet_multinomial import dirichlet_multinomial
from .factors.vectors.vector_gaussian import vector_gaussian
from .factors.vectors.wishart import wishart

# The vocabulary: end
# isort: split
from .laplace_of import laplace  # noqa: F811  (the distribution, and the approximation)

__version__ = "0.6.0"

__all__ = [
    "CallError", "CavityError", "CavityWarning", "Comparison", "DataError", "Evidence", "Found",
    "LaplaceApproximation", "Learned", "LogDensity", "LostError", "Marginal", "Maximum", "Model", "ModelError",
    "Posterior", "Program", "Samples", "Schedule", "UnsupportedError", "VariationalKernel", "abs", "all", "any",
    "bernoulli", "beta", "between", "binomial", "boolean", "cache", "categorical", "category", "cauchy", "censored",
    "compare", "compile", "cos", "count", "covariance", "cumprod", "dirichlet", "dirichlet_multinomial",
    "discrete_uniform", "dot", "element", "evidence", "evidence_gradient", "exp", "explain", "exponential",
    "factor", "flat", "gamma", "gaussian", "gaussian_process", "half_cauchy", "half_normal", "half_student_t",
    "index", "infer", "inverse_gamma", "inverse_gaussian", "kernels", "laplace", "laplace_approximation", "learn",
    "lkj", "load", "log", "log_density", "log_normal", "logistic", "logit_normal", "long", "map", "matrix", "max",
    "min", "mixture", "moves", "multinomial", "ncvmp", "negative_binomial", "ordered", "ordered_logistic",
    "ordered_probit", "pareto", "plot_draws", "point", "poisson", "posdef", "positive", "power", "probit", "real",
    "resume", "rows", "sample", "search", "simplex", "simulate", "sin", "skew_normal", "softmax", "spike_and_slab",
    "sqrt", "stack", "student_t", "subvector", "sum", "switch", "table", "tanh", "truncated", "truncated_gamma",
    "truncated_gaussian", "uniform", "unit", "vector", "vector_gaussian", "von_mises", "weibull", "where",
    "wishart", "workers",
]  # fmt: skip

# What runs a model is loaded when it is first asked for: to declare one takes the language and the vocabulary.
if TYPE_CHECKING:
    from .engine import moves
    from .engine.answers.marginal import Marginal
    from .engine.checks.compare import Comparison, compare
    from .engine.cluster import workers
    from .engine.data.long_tables import long
    from .engine.data.row_sources import rows
    from .engine.density.log_density import LogDensity, log_density
    from .engine.evidence.gradient import evidence_gradient
    from .engine.evidence.laplace import LaplaceApproximation, laplace_approximation
    from .engine.evidence.learn import Learned, learn
    from .engine.evidence.maximum import Maximum, map
    from .engine.infer import compile, explain, infer
    from .engine.load import load
    from .engine.moves.search import Found, search
    from .engine.plots.draws import plot_draws
    from .engine.posterior import Posterior
    from .engine.program import Program
    from .engine.resume import resume
    from .engine.sampling.draws import Samples
    from .engine.sampling.sample import sample
    from .engine.sampling.simulate import simulate
    from .engine.sampling.variational import VariationalKernel
    from .engine.support.on_disk import cache
    from .engine.tempering.evidence import evidence
    from .engine.tempering.found import Evidence
else:

    def __getattr__(name):
        if name == "models":
            return importlib.import_module(".models", __name__)
        if name not in _LATER:
            from .names_elsewhere import advice

            told = "" if name.startswith("_") else f". {advice(name, (f'cv.{own}' for own in __all__))}"
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{told}")
        room = importlib.import_module(_LATER[name], __name__)
        if not hasattr(room, name):  # a room inside it
            importlib.import_module(f"{_LATER[name]}.{name}", __name__)
        found = getattr(room, name)
        globals()[name] = found  # from now on an attribute like any other
        return found

    def __dir__():
        return sorted({*globals(), *_LATER, "models"})


# Where the names of the engine are, made by docs/make_front_door.py: begin
_LATER = {
    "Comparison": ".engine.checks.compare",
    "Evidence": ".engine.tempering.found",
    "Found": ".engine.moves.search",
    "LaplaceApproximation": ".engine.evidence.laplace",
    "Learned": ".engine.evidence.learn",
    "LogDensity": ".engine.density.log_density",
    "Marginal": ".engine.answers.marginal",
    "Maximum": ".engine.evidence.maximum",
    "Posterior": ".engine.posterior",
    "Program": ".engine.program",
    "Samples": ".engine.sampling.draws",
    "VariationalKernel": ".engine.sampling.variational",
    "cache": ".engine.support.on_disk",
    "compare": ".engine.checks.compare",
    "compile": ".engine.infer",
    "evidence": ".engine.tempering.evidence",
    "evidence_gradient": ".engine.evidence.gradient",
    "explain": ".engine.infer",
    "infer": ".engine.infer",
    "laplace_approximation": ".engine.evidence.laplace",
    "learn": ".engine.evidence.learn",
    "load": ".engine.load",
    "log_density": ".engine.density.log_density",
    "long": ".engine.data.long_tables",
    "map": ".engine.evidence.maximum",
    "moves": ".engine",
    "plot_draws": ".engine.plots.draws",
    "resume": ".engine.resume",
    "rows": ".engine.data.row_sources",
    "sample": ".engine.sampling.sample",
    "search": ".engine.moves.search",
    "simulate": ".engine.sampling.simulate",
    "workers": ".engine.cluster",
}
# Where the names of the engine are: end
