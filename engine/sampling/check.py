"""A posterior beside draws of its model: by NUTS, or by Gibbs sampling, which has discrete variables too."""

from __future__ import annotations

import importlib.util

import numpy as np

from ...compiler.language.nodes import Random
from ...factors.calls import call_checked
from ...factors.errors import ModelError, UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..checks import nuts
from ..checks.nuts import Check, Row, row_of
from ..density.log_density import density_of
from ..options import seed_of
from ..support.asked_arguments import check_counts
from .conditionals import discrete
from .joint import Joint
from .sample import chains_of

STATES = ("boolean", "category")
SAMPLERS = ("nuts", "gibbs", "auto")


def checked(posterior: Inferred, against: str = "auto", **options: int) -> Check:
    """See `Posterior.check`."""
    if not isinstance(against, str) or against not in SAMPLERS:
        raise ModelError(f"check(against={against!r}): the samplers to check against are {', '.join(SAMPLERS)}.")
    asked = against if against != "auto" else "nuts" if _is_smooth(posterior) else "gibbs"
    run = check if asked == "gibbs" else nuts.check
    return call_checked(run, "posterior.check", bound=True)(posterior, **options)


def _is_smooth(posterior: Inferred) -> bool:
    """Whether NUTS serves the model: some density is left, nowhere cut, once discrete variables are summed out."""
    try:
        density = density_of(posterior)
    except UnsupportedError:
        return False
    return bool(density.names) and not density.hard


def check(
    posterior: Inferred, *, draws: int = 1000, warmup: int | None = None, chains: int = 4, seed: int = 0
) -> Check:
    """Draws as `cv.sample` does and compares means, sds and probabilities of states; see `Check`.

    `draws` after `warmup` sweeps (as many by default) in each of `chains` chains. ModelError for counts below one,
    UnsupportedError without NumPyro (extra `mcmc`) or where `cv.sample` does not serve the model.
    """
    warmup = draws if warmup is None else warmup
    check_counts("check", draws=draws, chains=chains, warmup=warmup)
    seed = seed_of(seed)
    if importlib.util.find_spec("numpyro") is None:
        raise UnsupportedError("A check needs NumPyro, which is not installed: pip install 'cavity[mcmc]'.")
    joint = Joint(posterior.model, posterior.binding)
    if not joint.variables:
        raise UnsupportedError("Nothing is latent that data depend on: there is nothing to draw.")
    with double_precision():
        found = chains_of(joint, draws, chains, seed, warmup).draws
    kept = {name: array[:, warmup:] for name, array in found.items()}
    rows = tuple(_row(posterior, joint, variable, kept[name]) for name, variable in joint.variables.items())
    return Check(rows, kept, 0, (), "Gibbs")


def _row(posterior: Inferred, joint: Joint, variable: Random, drawn: np.ndarray) -> Row:
    kind = variable.domain.kind
    if kind == "category":
        drawn = drawn[..., None] == np.arange(discrete.state_count(joint, variable))
    return row_of(variable.name, posterior[variable.name], np.asarray(drawn, float), kind in STATES)
