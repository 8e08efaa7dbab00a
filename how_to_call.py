"""Calls that Python itself would refuse: what was asked, and how it is written."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence

from .factors.arrays import Argument
from .factors.errors import CallError
from .factors.numbers import brief

SAID_OTHERWISE = {
    "sd": ("std", "sigma", "stddev", "stdev", "scale", "standard_deviation"),
    "scale": ("sd", "sigma", "std", "beta", "b", "lengthscale", "length_scale", "ls"),
    "variance": ("var", "sigma2", "sigma_squared"),
    "precision": ("tau", "prec", "lam", "lambda_"),
    "covariance": ("cov", "sigma", "scale"),
    "mean": ("mu", "loc", "location", "m"),
    "location": ("mu", "loc", "mean"),
    "rate": ("lam", "lambda_", "beta", "mu", "intensity"),
    "shape": ("alpha", "a", "k", "concentration", "sample_shape"),
    "concentration": ("alpha", "a"),
    "dof": ("nu", "df", "degrees_of_freedom"),
    "probability": ("p", "prob", "theta", "probs", "hdi_prob", "level", "mass", "credible_interval"),
    "probabilities": ("p", "probs", "prob", "theta"),
    "low": ("lower", "min", "a", "minimum"),
    "high": ("upper", "max", "b", "maximum"),
    "trials": ("n", "count"),
    "a": ("alpha", "alpha1", "concentration1"),
    "b": ("beta", "alpha2", "concentration0"),
    "alpha": ("power", "a"),
    "q": ("p", "prob", "probability", "probabilities", "quantiles", "levels"),
    "key": ("seed", "rng", "rng_key", "random_state", "random_seed"),
    "seed": ("key", "rng", "rng_key", "random_state", "random_seed"),
    "draws": ("n", "samples", "num_samples", "n_samples", "iter", "iterations", "iter_sampling", "size"),
    "n": ("draws", "samples", "num_samples", "n_samples", "size", "num_draws"),
    "warmup": ("tune", "num_warmup", "n_warmup", "burn", "burnin", "burn_in", "iter_warmup"),
    "chains": ("num_chains", "n_chains"),
    "max_iterations": ("iterations", "sweeps", "n_iter", "max_iter", "maxiter", "num_iterations", "steps"),
    "sweeps": ("iterations", "n_iter", "max_iter", "max_iterations", "draws"),
    "tolerance": ("tol", "eps", "convergence_tolerance"),
    "max_iter": ("max_iterations", "n_iter", "iterations", "maxiter"),
    "n_sweeps": ("n_iter", "max_iter", "iterations", "n_samples", "sweeps"),
    "prior_variance": ("C", "prior_var", "sigma2", "variance"),
    "n_components": ("n_clusters", "k", "n_factors", "components", "K"),
    "n_factors": ("n_components", "k", "factors", "K"),
    "random_state": ("seed", "key", "rng", "rng_key"),
    "n_init": ("restarts", "n_restarts"),
    "restarts": ("n_init", "n_restarts", "inits", "starts"),
    "start": ("init", "inits", "initial", "initvals", "init_params"),
    "progress": ("progressbar", "progress_bar", "verbose"),
    "data": ("observed", "obs", "observations", "X", "given", "evidence"),
    "datas": ("data", "datasets"),
    "datasets": ("data", "datas"),
    "observed": ("data", "obs", "given"),
    "sizes": ("size", "shape", "dims", "coords"),
    "plates": ("plate", "dims", "shape", "size"),
    "names": ("coords", "labels", "categories", "levels"),
    "size": ("n", "length", "dim", "dimension", "shape"),
    "over": ("axis", "plate", "dim", "plates"),
    "method": ("algorithm", "engine", "inference"),
    "schedule": ("order",),
    "workers": ("n_jobs", "cores", "processes"),
    "ax": ("axes", "axis", "fig", "figure"),
    "path": ("file", "filename", "fname", "name"),
    "classes": ("size", "n", "k", "num_classes", "categories"),
    "dimension": ("size", "n", "d", "dim"),
    "statement": ("condition", "function", "f"),
    "term": ("distribution", "dist", "factor", "prior"),
    "domain": ("dtype", "kind", "type"),
    "log_density": ("logp", "log_prob", "logpdf"),
}
"""What arguments are called elsewhere, by our name."""


def call_refusal(
    called: str, signature: inspect.Signature, args: Sequence[Argument], kwargs: Mapping[str, Argument]
) -> CallError:
    """Of a call that does not fit the signature: too many by place, unknown, missing or given twice."""
    parameters = signature.parameters
    by_place = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    unnamed = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_ONLY]
    several = [f"*{n}" for n, p in parameters.items() if p.kind is p.VAR_POSITIONAL]
    written = ", ".join([*map(_shown, args), *(f"{name}={_shown(value)}" for name, value in kwargs.items())])
    head = f"{called}({written}): "
    others = [f"**{n}" for n, p in parameters.items() if p.kind is p.VAR_KEYWORD]
    usual = ", ".join([*by_place, *several, *(f"{name}=" for name in by_name), *others])
    usual = f" It is called as {called}({usual})."
    if named := [name for name in kwargs if name in unnamed]:
        return CallError(f"{head}{named[0]} is given by its place, without its name.{usual}")
    if not others and (unknown := [name for name in kwargs if name not in parameters]):
        meant = _meant(unknown[0], [name for name in parameters if name not in kwargs])
        return CallError(f"{head}there is no {unknown[0]}=.{f' Here it is {meant}=.' if meant else ''}{usual}")
    if len(args) > len(by_place) and not several:
        takes = f"{len(by_place) or 'no'} argument{'s' if len(by_place) != 1 else ''} by place"
        name = f" Say what {_shown(args[len(by_place)])} is, by name: {_listed(by_name)}." if by_name else ""
        return CallError(f"{head}it takes {takes}; found {len(args)}.{name}{usual}")
    given = [*by_place[: len(args)], *kwargs]
    if twice := [name for name in by_place[: len(args)] if name in kwargs]:
        return CallError(f"{head}{twice[0]} is given twice, by place and by name.{usual}")
    lacks = [n for n, p in parameters.items() if n not in given and p.default is p.empty and f"*{n}" not in several]
    lacks = [n for n in lacks if parameters[n].kind is not parameters[n].VAR_KEYWORD]
    return CallError(f"{head}{_listed(lacks, 'and', unnamed)} must be given.{usual}")


def _shown(value: Argument) -> str:
    """A value as it reads in a call: what takes a page, or asks for more than its text, by what it is."""
    kind = type(value)
    if kind.__module__.startswith(f"{__package__}.engine") or hasattr(value, "plates"):
        return f"<{kind.__name__}>"
    try:
        return brief(value)
    except Exception:  # a value whose text is wrong
        return f"<{kind.__name__}>"


def _meant(name: str, parameters: Sequence[str]) -> str:
    """Which parameter somebody means who calls it by this name; empty where nobody knows."""
    if close := difflib.get_close_matches(name, parameters, 1, 0.8):
        return close[0]
    for own in parameters:
        if name in SAID_OTHERWISE.get(own, ()):
            return own
    return next(iter(difflib.get_close_matches(name, parameters, 1, 0.7)), "")


def _listed(names: Sequence[str], last: str = "or", unnamed: Sequence[str] = ()) -> str:
    named = [name if name in unnamed else f"{name}=" for name in names]
    return f"{', '.join(named[:-1])} {last} {named[-1]}" if len(named) > 1 else named[0]
