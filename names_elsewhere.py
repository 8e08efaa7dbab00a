"""What the vocabulary is called in other systems: names that people bring with them, and ours beside them.

One table, read by the error of whoever asks for such a name and by `docs/what-is-it-called.md`, which is made of it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .factors.errors import capital

SYSTEMS = ("PyMC", "Stan", "NumPyro", "Infer.NET", "RxInfer", "BUGS", "SciPy")


class Row(NamedTuple):
    """Our way to say something, and its names in each of `SYSTEMS`: several with commas between them, or none."""

    ours: str
    note: str
    pymc: str = ""
    stan: str = ""
    numpyro: str = ""
    infernet: str = ""
    rxinfer: str = ""
    bugs: str = ""
    scipy: str = ""

    def names(self) -> list[tuple[str, str]]:
        """Pairs of a system and one name there."""
        cells = zip(SYSTEMS, self[2:], strict=True)
        return [(system, name.strip()) for system, cell in cells for name in cell.split(",") if name.strip()]


# fmt: off
TERMS = (
    Row("cv.gaussian(mean, sd=)", "or `variance=`, `precision=`; an sd in PyMC, Stan and NumPyro, a precision in BUGS",
        "Normal", "normal, std_normal", "Normal", "Gaussian", "Normal, NormalMeanVariance, NormalMeanPrecision",
        "dnorm", "norm"),
    Row("cv.vector_gaussian(mean, covariance=)", "or `precision=`",
        "MvNormal", "multi_normal, multi_normal_prec", "MultivariateNormal", "VectorGaussian",
        "MvNormal, MvNormalMeanCovariance, MvNormalMeanPrecision", "dmnorm", "multivariate_normal"),
    Row("cv.student_t(dof, mean, scale)", "", "StudentT", "student_t", "StudentT", "", "TDist", "dt", "t"),
    Row("cv.cauchy(location, scale)", "", "Cauchy", "cauchy", "Cauchy", "", "Cauchy", "", "cauchy"),
    Row("cv.skew_normal(location, scale, skew)", "", "SkewNormal", "skew_normal", "", "", "SkewNormal", "", "skewnorm"),
    Row("cv.laplace(mean, scale)", "", "Laplace", "double_exponential", "Laplace", "", "Laplace", "ddexp", "laplace"),
    Row("cv.log_normal(mean, variance=)", "of the logarithm",
        "LogNormal, Lognormal", "lognormal", "LogNormal", "", "LogNormal", "dlnorm", "lognorm"),
    Row("cv.logit_normal(mean, variance=)", "of the log odds", "LogitNormal", "", "", "", "LogitNormal", "", ""),
    Row("cv.half_normal(scale)", "", "HalfNormal", "", "HalfNormal", "", "", "", "halfnorm"),
    Row("cv.half_cauchy(scale)", "", "HalfCauchy", "", "HalfCauchy", "", "", "", "halfcauchy"),
    Row("cv.half_student_t(dof, scale)", "", "HalfStudentT", "", "", "", "", "", ""),
    Row("cv.uniform(low, high)", "", "Uniform", "uniform", "Uniform", "", "Uniform", "dunif", "uniform"),
    Row("cv.flat()", "an improper prior; `cv.flat(cv.positive)` of positive numbers",
        "Flat, HalfFlat", "", "ImproperUniform", "", "Uninformative", "dflat", ""),
    Row("cv.truncated_gaussian(mean, variance, low, high)", "",
        "TruncatedNormal", "", "TruncatedNormal", "TruncatedGaussian", "", "dnorm_T", "truncnorm"),
    Row("cv.truncated_gamma(shape, rate, low, high)", "", "", "", "", "TruncatedGamma", "", ""),
    Row("cv.gamma(shape, rate)", "Infer.NET's second argument is a scale",
        "Gamma", "gamma", "Gamma", "Gamma, GammaFromShapeAndRate, GammaFromMeanAndVariance", "GammaShapeRate",
        "dgamma", "gamma"),
    Row("cv.gamma(dof / 2, 0.5)", "", "ChiSquared", "chi_square", "Chi2", "", "Chisq", "dchisqr", "chi2"),
    Row("cv.inverse_gamma(shape, scale)", "",
        "InverseGamma", "inv_gamma", "InverseGamma", "", "InverseGamma, GammaInverse", "", "invgamma"),
    Row("cv.exponential(rate)", "or `mean=`; SciPy has a scale",
        "Exponential", "exponential", "Exponential", "", "Exponential", "dexp", "expon"),
    Row("cv.pareto(shape, scale)", "the scale is the smallest value",
        "Pareto", "pareto", "Pareto", "Pareto", "Pareto", "dpar", "pareto"),
    Row("cv.inverse_gaussian(mean, shape)", "",
        "Wald, InverseGaussian", "inv_gaussian, wald", "", "", "InverseGaussian", "", "invgauss"),
    Row("cv.beta(a, b)", "", "Beta", "beta", "Beta", "Beta", "Beta", "dbeta", "beta"),
    Row("cv.weibull(shape, scale)", "BUGS has a rate", "Weibull", "weibull", "Weibull", "", "Weibull", "dweib",
        "weibull_min"),
    Row("cv.von_mises(mean, concentration)", "", "VonMises", "von_mises", "VonMises", "", "", "", "vonmises"),
    Row("cv.dirichlet(concentration)", "", "Dirichlet", "dirichlet", "Dirichlet", "Dirichlet", "Dirichlet", "ddirch"),
    Row("cv.wishart(dof, scale)", "its mean is dof * scale",
        "Wishart", "wishart", "Wishart", "Wishart", "Wishart", "dwish", "wishart"),
    Row("cv.lkj(concentration)", "with `cv.covariance(scales, correlations)` as the covariance of varying effects",
        "LKJCorr, LKJCholeskyCov", "lkj_corr, lkj_corr_cholesky", "LKJ, LKJCholesky", "", "", "", ""),
    Row("cv.bernoulli(p)", "", "Bernoulli", "bernoulli", "Bernoulli, BernoulliProbs", "Bernoulli", "Bernoulli",
        "dbern"),
    Row("cv.bernoulli(cv.logistic(score))", "",
        "", "bernoulli_logit", "BernoulliLogits", "BernoulliFromLogOdds", "BernoulliLogit", ""),
    Row("cv.categorical(p)", "the first class is 0 (1 in Stan, RxInfer and BUGS)",
        "Categorical", "categorical", "Categorical, CategoricalProbs", "Discrete", "Categorical", "dcat"),
    Row("cv.categorical(cv.softmax(score, over=plate))", "",
        "", "categorical_logit", "CategoricalLogits", "DiscreteFromLogProbs", "", ""),
    Row("cv.binomial(n, p)", "", "Binomial", "binomial", "Binomial, BinomialProbs", "Binomial", "Binomial", "dbin",
        "binom"),
    Row("cv.binomial(n, cv.logistic(score))", "", "", "binomial_logit", "BinomialLogits", "", "", ""),
    Row("cv.multinomial(n, p)", "", "Multinomial", "multinomial", "Multinomial, MultinomialProbs", "Multinomial",
        "Multinomial", "dmulti"),
    Row("cv.dirichlet_multinomial(concentration, n)", "",
        "DirichletMultinomial", "dirichlet_multinomial", "DirichletMultinomial", "", "", ""),
    Row("cv.poisson(rate)", "", "Poisson", "poisson", "Poisson", "Poisson", "Poisson", "dpois"),
    Row("cv.poisson(cv.exp(score))", "", "", "poisson_log", "", "", "", ""),
    Row("cv.negative_binomial(mean=, dispersion=)", "or a size and a probability; the dispersion is Stan's phi",
        "NegativeBinomial", "neg_binomial_2, neg_binomial", "NegativeBinomial2, NegativeBinomialProbs", "", "",
        "dnegbin", "nbinom"),
    Row("cv.discrete_uniform(size)", "", "DiscreteUniform", "", "DiscreteUniform", "DiscreteUniform", "", "",
        "randint"),
    Row("cv.ordered_logistic(score, cutpoints)", "",
        "OrderedLogistic", "ordered_logistic", "OrderedLogistic", "", "", ""),
    Row("cv.ordered_probit(score, cutpoints)", "", "OrderedProbit", "ordered_probit", "", "", "", ""),
    Row("cv.ordered(term, size=)", "an increasing vector, such as random cutpoints",
        "ordered, transforms.ordered, univariate_ordered", "ordered, induced_dirichlet",
        "OrderedTransform, ordered_vector", "", "", "sort"),
    Row("cv.gaussian_process(inputs, kernel)", "",
        "gp.Latent, gp.Marginal", "gp_exp_quad_cov", "", "SparseGP", "", ""),
    Row("cv.spike_and_slab(...)", "", "", "", "", "", "", ""),
    Row("cv.censored(term, low, high)", "bounds may be rows of an input; intervals have `until=`",
        "Censored", "", "LeftCensoredDistribution, RightCensoredDistribution, IntervalCensoredDistribution", "", "",
        "dinterval"),
    Row("cv.truncated(term, low, high)", "of any term", "Truncated", "",
        "TruncatedDistribution, LeftTruncatedDistribution, RightTruncatedDistribution, TwoSidedTruncatedDistribution",
        "", "Truncated", ""),
    Row("cv.mixture(weights, term, term, ...)", "the class is summed out, and is the variable 'y class' of 'y'",
        "Mixture, NormalMixture", "log_mix, log_sum_exp", "Mixture, MixtureSameFamily", "", "", "dnormmix"),
    Row("cv.mixture(p, cv.point(0), cv.poisson(rate))", "p is the probability of the extra zeros; any count term",
        "ZeroInflatedPoisson, ZeroInflatedNegativeBinomial, ZeroInflatedBinomial", "",
        "ZeroInflatedPoisson, ZeroInflatedNegativeBinomial2, ZeroInflatedDistribution", "", "", ""),
    Row("cv.mixture(p, cv.point(0), cv.truncated(cv.poisson(rate), low=1))", "a hurdle; any count term",
        "HurdlePoisson, HurdleNegativeBinomial", "", "", "", "", ""),
    Row("cv.point(value)", "a count", "DiracDelta, Constant", "", "Delta", "", "PointMass", ""),
    Row("cv.factor(name, ..., log_density=)", "a density of one's own",
        "CustomDist, DensityDist, Potential", "target", "factor", "", "@node", "dloglik"),
    Row("cv.switch(selector, *terms)", "a gate: the case decides which term generates",
        "", "", "MixtureGeneral", "Variable.Case, Variable.If, Variable.Switch", "NormalMixture, GammaMixture", ""),
)
EXPRESSIONS = (
    Row("a + b, a * b, a @ b, cv.dot(a, b)", "", "math.dot, pm.math.dot", "dot_product", "", "InnerProduct",
        "SoftDot", "inprod"),
    Row("cv.exp(x)", "", "math.exp", "exp", "", "Exp", "", "exp"),
    Row("cv.log(x)", "", "math.log", "log", "", "Log", "", "log"),
    Row("cv.sqrt(x), x ** 0.5", "of numbers that are never negative",
        "math.sqrt", "sqrt, pow", "power", "", "", "sqrt"),
    Row("cv.abs(x), abs(x)", "", "math.abs, math.abs_", "fabs", "absolute", "", "", "abs"),
    Row("cv.tanh(x)", "", "math.tanh", "tanh", "tanh", "", "", ""),
    Row("cv.sin(x)", "", "math.sin", "sin", "sin", "", "", "sin"),
    Row("cv.cos(x)", "", "math.cos", "cos", "cos", "", "", "cos"),
    Row("cv.where(condition, a, b)", "one number or the other: for terms cv.switch",
        "math.switch, math.where, ifelse", "int_step", "where, cond", "", "", "step"),
    Row("cv.logistic(x)", "", "math.invlogit, math.sigmoid", "inv_logit", "expit", "Logistic", "", "ilogit"),
    Row("cv.probit(x)", "the normal cdf", "math.invprobit", "Phi, Phi_approx", "ndtr", "", "Probit", "phi"),
    Row("cv.softmax(x, over=plate)", "", "math.softmax", "softmax", "", "Softmax", "", ""),
    Row("cv.cumprod(p, over=plate)", "of probabilities", "math.cumprod", "", "cumprod", "", "", ""),
    Row("cv.sum(x, over=plate)", "", "math.sum", "sum", "", "Sum", "", "sum"),
    Row("cv.sum(x, by=groups)", "over the members of groups of any size", "", "", "segment_sum", "", "", ""),
    Row("cv.table(array)[z]", "constants that a variable chooses", "constant", "", "",
        "Variable.Constant", "", ""),
    Row("cv.max(a, b), cv.min(a, b)", "", "math.maximum", "fmax, fmin", "maximum, minimum", "Max", "", "max, min"),
    Row("cv.stack(a, b)", "several numbers as one vector", "math.stack", "to_vector", "", "Vector.FromArray", "", ""),
    Row("cv.covariance(scales, correlations)", "of a few effects; as `covariance=` of cv.vector_gaussian",
        "", "quad_form_diag", "", "", "", ""),
    Row("cv.subvector(x, start, size)", "", "", "segment", "", "Subvector", "", ""),
    Row("cv.all(b, over=plate), a & b", "", "math.and_", "", "", "AllTrue, And", "AND", ""),
    Row("cv.any(b, over=plate), a | b", "", "math.or_", "", "", "AnyTrue, Or", "OR", ""),
    Row("~a", "", "", "", "", "Not", "NOT", ""),
    Row("cv.between(x, low, high)", "", "", "", "", "IsBetween", "", ""),
    Row("x[index]", "a gather where the index is data, a gate where it is random",
        "", "", "", "Variable.GetItem, Subarray, JaggedSubarray", "", ""),
)
VERBS = (
    Row("cv.Model(name)", "no context is needed; the model is a value", "Model", "model", "model", "", "@model",
        "model"),
    Row("m.random(name, term, plates=)", "a variable; observed where data of its name are given",
        "", "parameters", "sample", "Variable.Random", "randomvar", ""),
    Row("m.input(name, domain, plates=)", "data that are always given", "Data, MutableData, ConstantData", "data", "",
        "Variable.Observed", "datavar", ""),
    Row("m.let(name, expression)", "", "Deterministic", "generated_quantities, transformed_parameters", "deterministic",
        "", "", "logical"),
    Row("m.plate(name, size)", "", "Dim", "", "plate", "Range", "", "for"),
    Row("m.constrain(expression)", "", "", "", "", "Variable.ConstrainTrue, ConstrainTrue, ConstrainPositive", "", ""),
    Row("m.chain(name, over=, first=, then=)", "", "AR, GaussianRandomWalk, RandomWalk", "", "scan, GaussianRandomWalk",
        "", "", ""),
    Row("cv.infer(model, data)", "the posterior; cv.infer(model, {}) is the prior",
        "sample, fit, sample_prior_predictive", "sampling, variational, pathfinder",
        "MCMC, NUTS, SVI, Predictive", "InferenceEngine, Infer", "inference", "jags, bugs"),
    Row("cv.sample(model, data)", "Gibbs sampling compiled from the graph, and NUTS",
        "sample, CompoundStep, Slice, BinaryGibbsMetropolis, CategoricalGibbsMetropolis, Metropolis", "sampling",
        "HMCGibbs, DiscreteHMCGibbs, MixedHMC", "GibbsSampling", "", "coda.samples, jags.samples"),
    Row("posterior.predict(data)", "", "sample_posterior_predictive", "", "", "", "", ""),
    Row("posterior.check()", "NUTS beside the posterior", "NUTS", "nuts", "HMC", "", "", ""),
    Row("posterior.log_evidence", "", "sample_smc, log_marginal_likelihood", "bridge_sampler", "log_evidence", "",
        "", ""),
    Row("cv.laplace_approximation(model, data)", "a Gaussian about the mode, and weighted draws around it",
        "fit_laplace", "laplace", "AutoLaplaceApproximation", "", "", ""),
    Row("cv.map(model, data)", "the values of largest density; flat=True for maximum likelihood",
        "find_MAP", "optimizing", "AutoDelta", "", "", ""),
    Row("cv.log_density(model, data)", "the joint log density, for a sampler of one's own",
        "compile_logp, model.logp", "log_prob", "log_density, potential_energy", "", "", ""),
)
# fmt: on
ROWS = (*TERMS, *EXPRESSIONS, *VERBS)
ARGUMENTS = {
    **dict.fromkeys(("std", "sd", "sigma", "stddev", "scale"), "as in cv.gaussian(mean, sd=2.0)"),
    **dict.fromkeys(("var", "variance"), "as in cv.gaussian(mean, variance=4.0)"),
    **dict.fromkeys(("tau", "precision"), "as in cv.gaussian(mean, precision=0.25)"),
    "observed": "that of cv.compile(model, observed=names); values are given to cv.infer(model, data)",
    "size": "as in m.plate('n', size=10) and cv.infer(model, data, sizes={'n': 10})",
}
"""Of names that are asked for as if they were functions: where they are written."""


OF_A_POSTERIOR = {
    **{name: f"posterior.{name}(...)" for name in ("predict", "predictive", "loo", "trust", "check", "report", "save")},
    **dict.fromkeys(("waic", "psis", "elpd"), "posterior.loo(), and cv.compare([...])"),
    **dict.fromkeys(("summary", "describe", "print_summary"), "print(posterior.summary())"),
    **dict.fromkeys(("plot", "plot_trace", "plot_posterior", "traceplot"), "posterior.plot()"),
    **dict.fromkeys(
        ("hdi", "quantile", "std", "sd", "median", "mode"), "of one variable, such as posterior['a'].sd or .hdi(0.9)"
    ),
}
"""What is asked for as if it were a function, and is asked of a posterior."""
OTHERWISE = {
    "mean": "cv.sum(x, over=plate) / size of an expression, posterior['a'].mean of an answer",
    "softplus": "cv.log(1.0 + cv.exp(x))",
    "logit": "cv.log(p) - cv.log(1.0 - p)",
    "geometric": "cv.negative_binomial(successes=1, probability=p), which counts failures, from zero",
    "square": "x ** 2",
    **dict.fromkeys(
        ("observe", "given", "condition"), "what the data name is observed: cv.infer(model, {'y': values})"
    ),
    **dict.fromkeys(("ones", "zeros", "eye", "arange", "array"), "arrays are NumPy's"),
    **dict.fromkeys(("advi", "vb", "meanfield"), "cv.infer(model, data, method='vmp')"),
}
"""What the vocabulary has under no name of its own, and how it is said."""


def ours(name: str) -> list[tuple[Row, list[str]]]:
    """The rows where other systems have this name, each with those systems; small letters and underscores aside."""
    asked, found = _plain(name), []
    for row in ROWS:
        systems = [system for system, theirs in row.names() if _plain(theirs) == asked]
        if systems:
            found.append((row, list(dict.fromkeys(systems))))
    return found


def advice(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name that is not known: by other systems' names, else by the spelling."""
    if rows := ours(name):
        told = [f"that of {_joined(systems)} is `{row.ours}` here" for row, systems in rows]
        note = f" ({rows[0][0].note})" if len(rows) == 1 and rows[0][0].note else ""
        return f"{capital('; '.join(told))}{note}. All names: docs/what-is-it-called.md."
    if name in OF_A_POSTERIOR:
        return f"Of a posterior, that of cv.infer(model, data): {OF_A_POSTERIOR[name]}."
    if name.lower() in OTHERWISE:
        return f"Here: {OTHERWISE[name.lower()]}."
    if name in ARGUMENTS:
        return f"It is an argument here, {ARGUMENTS[name]}."
    known = list(known)
    for ending in ("_lpdf", "_lpmf", "_lcdf", "_lccdf", "_cdf", "_pdf", "_rng", "_log", "_cholesky"):  # of Stan
        if name.endswith(ending) and ours(name.removesuffix(ending)):
            return advice(name.removesuffix(ending), known)
    plain = {_plain(own): own for own in known}
    close = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.75)
    return f"Did you mean `{plain[close[0]]}`?" if close else "docs/language.md has the vocabulary."


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.split(".")[-1].lower())


OF_POSTERIORS = {
    **dict.fromkeys(
        ("mean", "means", "sd", "std", "stdev", "var", "variance", "median", "mode", "quantile", "quantiles",
         "interval", "hdi", "prob", "pdf", "cdf", "family", "shape"),
        "it is asked of one variable, posterior['a'].mean, .sd, .quantile(q), .prob(statement)",
    ),
    **dict.fromkeys(
        ("draws", "samples", "get_samples", "extract", "stan_variables", "stan_variable", "sample_posterior"),
        "posterior.sample(n) has joint draws, by name",
    ),
    **dict.fromkeys(
        ("sample_posterior_predictive", "posterior_predictive", "simulate", "generate", "ppc"),
        "posterior.predictive(n) draws data anew, posterior.predict(data) has marginals of new rows",
    ),
    **dict.fromkeys(("marginal", "marginals", "posteriors", "variables", "vars", "params", "parameters"),
                    "posterior['a'] is the marginal of 'a', and list(posterior) has all names"),
    **dict.fromkeys(("log_marginal_likelihood", "logz", "elbo", "marginal_likelihood", "free_energy", "bound"),
                    "posterior.log_evidence"),
    **dict.fromkeys(("to_pandas", "dataframe", "df", "frame", "table"), "posterior.to_frame()"),
    **dict.fromkeys(("to_netcdf", "to_pickle", "dump", "write", "store", "to_file", "to_json"),
                    "posterior.save(path), and cv.load(path, model)"),
    **dict.fromkeys(("to_inference_data", "inference_data", "idata", "to_inferencedata"), "posterior.to_arviz()"),
    **dict.fromkeys(("waic", "psis", "psis_loo", "elpd"), "posterior.loo(), and posterior.compare(other)"),
    **dict.fromkeys(("plot_trace", "plot_posterior", "hist", "plots", "show", "traceplot"), "posterior.plot('a')"),
    **dict.fromkeys(("print_summary", "describe", "stansummary", "info"), "print(posterior.summary())"),
    **dict.fromkeys(("rhat", "r_hat", "ess", "diagnose", "diagnostics"),
                    "posterior.diagnosis, posterior.verdict and posterior.trust(); chains are cv.sample(model, data)"),
    **dict.fromkeys(("cov", "corr", "correlation"), "posterior.covariance('a', 'b')"),
    **dict.fromkeys(("to_html", "html"), "posterior.report(path)"),
    **dict.fromkeys(("update", "condition", "fit", "observe"),
                    "more data go into cv.infer(model, data, prior=posterior)"),
}  # fmt: skip
OF_MARGINALS = {
    **dict.fromkeys(("stdev", "stddev", "sigma", "standard_deviation", "scale"), "marginal.sd"),
    **dict.fromkeys(("loc", "mu", "expectation", "expected_value", "expect", "average", "numpy", "to_numpy", "values",
                     "value", "item", "tolist", "data", "estimate", "point"),
                    "marginal.mean, which np.asarray(marginal) is too"),
    **dict.fromkeys(("pdf", "logpdf", "log_prob", "logp", "pmf", "logpmf", "density"),
                    "marginal.log_density(x)"),
    **dict.fromkeys(("cdf", "sf", "logcdf", "survival", "probability_of", "p"),
                    "marginal.prob(lambda v: v <= x)"),
    **dict.fromkeys(("ppf", "icdf", "percentile", "percentiles", "quantiles", "isf"), "marginal.quantile(q)"),
    **dict.fromkeys(("rvs", "draw", "draws", "samples", "random", "rsample"), "marginal.sample(seed, (n,))"),
    **dict.fromkeys(("credible_interval", "ci", "eti", "confidence_interval", "conf_int", "bounds", "support"),
                    "marginal.interval(0.9) or marginal.hdi(0.9)"),
    **dict.fromkeys(("hpd", "hpdi"), "marginal.hdi(0.9)"),
    **dict.fromkeys(("dist", "params", "args", "kwds"), "marginal.distribution and marginal.parameters"),
    **dict.fromkeys(("cov", "covariance_matrix"), "marginal.covariance"),
    **dict.fromkeys(("argmax", "probs", "probabilities", "logits"),
                    "marginal.mode is the likeliest class, marginal.probability are the probabilities"),
    **dict.fromkeys(("plot", "hist"), "posterior.plot(marginal.name)"),
    **dict.fromkeys(("sum", "max", "min", "round", "T", "reshape", "astype", "flatten", "ravel", "ndim", "size", "dot",
                     "argsort", "copy", "squeeze", "transpose", "dtype", "argmin", "any", "all", "cumsum"),
                    "those of arrays are asked of its mean: marginal.mean.sum()"),
    **dict.fromkeys(("loc_", "iloc", "isel", "at"), "marginal.sel(plate=name), or marginal.mean[place]"),
}  # fmt: skip
OF_MODELS = {
    **dict.fromkeys(("fit", "infer", "run", "condition", "posterior", "infer_posterior", "inference"),
                    "cv.infer(model, data)"),
    **dict.fromkeys(("sample", "mcmc", "nuts", "gibbs"),
                    "cv.sample(model, data) runs chains, model.simulate(n, data) draws from the prior"),
    **dict.fromkeys(("observe", "observed", "given", "set_data", "observe_value"),
                    "what is observed is in the data: cv.infer(model, {'y': values})"),
    **dict.fromkeys(("logp", "log_prob", "log_density", "compile_logp", "logprob"), "cv.log_density(model, data)"),
    **dict.fromkeys(("prior", "prior_predictive", "sample_prior_predictive", "predict", "draw"),
                    "model.simulate(n, data) draws from the prior, cv.infer(model, {}) has its marginals"),
    **dict.fromkeys(("compile", "explain", "map", "learn"), "it is a function: cv.compile(model, ...)"),
    **dict.fromkeys(("variables", "vars", "parameters", "nodes", "free_RVs", "unobserved"),
                    "model.randoms, model.lets and model.inputs, by name"),
    **dict.fromkeys(("plot", "to_graphviz", "graph", "draw_graph", "render"),
                    "in a notebook a model is drawn as it stands; posterior.graph and cv.explain(model) tell the rest"),
    **dict.fromkeys(("param", "parameter", "add_variable", "var", "variable"), "model.random(name, term)"),
    **dict.fromkeys(("add_coord", "coords", "dims", "dim", "range"), "model.plate(name, size)"),
    **dict.fromkeys(("potential", "factor", "add_factor"),
                    "model.constrain(statement), or a density of your own by cv.factor"),
    **dict.fromkeys(("save", "dump"), "a model is Python: keep its function, or pickle it"),
}  # fmt: skip
OF_PROGRAMS = {
    **dict.fromkeys(("infer", "fit", "execute", "predict"), "program(data)"),
    **dict.fromkeys(("infer_many", "vmap", "pmap", "many"),
                    "program.batch(datas), or program.map(datasets) by processes"),
    **dict.fromkeys(("plot", "graph"), "program.explain() tells it, and in a notebook it is drawn as it stands"),
    **dict.fromkeys(("save", "dump", "serialize"), "a program is pickled with its model; cv.cache keeps machine code"),
}  # fmt: skip
OF_SKILLS = {
    **dict.fromkeys(("players_", "mean_", "sd_", "converged_", "log_evidence_", "draw_margin_", "drift_", "points_",
                     "home_advantage_"),
                    "it is there after skills.fit(games)"),
    **dict.fromkeys(("rating", "ratings", "ratings_", "skill", "skills", "skill_", "mu", "sigma", "ranking"),
                    "skills.mean_ and skills.sd_ in the order of skills.players_, or skills.leaderboard()"),
    **dict.fromkeys(("win_probability", "predict_win", "win_prob", "probability", "quality", "quality_1vs1"),
                    "skills.predict_proba(first, second)"),
    **dict.fromkeys(("rate", "rate_1vs1", "update", "add_games", "learn"),
                    "skills.fit(games), then skills.partial_fit(games)"),
    **dict.fromkeys(("learning_curves", "history", "trajectory"), "skills.curve(player)"),
}  # fmt: skip
ATTRIBUTES = {
    "skills": OF_SKILLS,
    "posterior": OF_POSTERIORS, "marginal": OF_MARGINALS, "model": OF_MODELS, "program": OF_PROGRAMS,
    "samples": OF_POSTERIORS,
}  # fmt: skip
"""Of what a user has: what its attributes are called by who knows another library, and what is written here."""


def attribute_advice(thing: object, shown: str, name: str) -> str:
    """What to write instead of an attribute that a `thing`, called `shown`, does not have."""
    own = [known for known in dir(type(thing)) if not known.startswith("_")]
    told = ATTRIBUTES.get(shown, {}).get(name)
    if name.endswith("_") and hasattr(type(thing), "fit") and not told:
        return f"What ends in _ is found by `{shown}.fit(...)`, which was not called, or does not find this."
    if isinstance(thing, Mapping) and name in list(thing):
        return f"Variables are asked for by name in brackets: {shown}[{name!r}]."
    plain = {_plain(known): known for known in own}
    if close := difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.85):
        return f"Did you mean `{shown}.{plain[close[0]]}`?"
    if told:
        return f"Here: {told}."
    if rows := ours(name):
        return f"Here: {'; '.join(f'`{row.ours}`' for row, _ in rows)}."
    if close := difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.7):
        return f"Did you mean `{shown}.{plain[close[0]]}`?"
    return f"It has {', '.join(own)}."
