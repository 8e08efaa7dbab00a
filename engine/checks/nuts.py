"""NUTS beside a posterior, and where they differ. Needs the extra `mcmc` (NumPyro)."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from ...factors.calls import methods_checked
from ...factors.errors import UnsupportedError
from ...factors.switches import double_precision
from ..answers.inferred import Inferred
from ..answers.marginal import Marginal
from ..density.log_density import density_of
from ..options import seed_of
from ..support.asked_arguments import check_counts
from .reference import belief_draws, functions

if TYPE_CHECKING:
    from numpyro.infer import MCMC, NUTS

GOOD_RHAT = 1.05
PROBABILITY = 0.02  # what counts as agreement of a probability
SHIFT, RATIO = 0.1, 1.1  # what counts as agreement, beyond two standard errors of the sampler


class Row(NamedTuple):
    """One variable: elements flattened, means and sds of the beliefs and of a sampler, and how well that mixed.

    `chances` tells that the elements are probabilities of states.
    """

    name: str
    mean: Float[np.ndarray, " element"]
    sd: Float[np.ndarray, " element"]
    nuts_mean: Float[np.ndarray, " element"]
    nuts_sd: Float[np.ndarray, " element"]
    rhat: Float[np.ndarray, " element"]
    ess: Float[np.ndarray, " element"]
    chances: bool = False

    @property
    def shift(self) -> np.ndarray:
        """Belief mean minus NUTS mean, in NUTS standard deviations."""
        return (self.mean - self.nuts_mean) / self.nuts_sd

    @property
    def ratio(self) -> np.ndarray:
        """Belief sd over NUTS sd."""
        return self.sd / self.nuts_sd

    @property
    def agrees(self) -> bool:
        """Within a tenth of an sd and a tenth of its size, beyond two standard errors of the sampler.

        Probabilities are to be within .02, beyond the same.
        """
        error = 2.0 / np.sqrt(np.maximum(np.nan_to_num(self.ess, nan=np.inf), 1.0))
        if self.chances:
            return bool(np.all(np.abs(self.mean - self.nuts_mean) < PROBABILITY + error * self.nuts_sd))
        used = self.nuts_sd > 0
        near = (np.abs(self.shift) < SHIFT + error) & (np.abs(np.log(self.ratio)) < np.log(RATIO) + error)
        return bool(np.all(near[used]))


@methods_checked("check")
@dataclasses.dataclass(frozen=True)
class Check:
    """The comparison of a posterior with a sampler, called `by`; `print` it.

    `rows` has one `Row` for each latent variable that was drawn, `samples` the draws by name, shaped chains + draws +
    the variable's shape, `divergences` counts the transitions that NUTS distrusts, `summed` names the discrete
    variables that were summed out. `ok` is true when all agree and the sampler has mixed.
    """

    rows: tuple[Row, ...]
    samples: dict[str, np.ndarray]
    divergences: int
    summed: tuple[str, ...]
    by: str = "NUTS"

    @property
    def mixed(self) -> bool:
        """Whether the chains agree with each other: R-hat below 1.05 everywhere."""
        return all(np.nanmax(row.rhat, initial=1.0) < GOOD_RHAT for row in self.rows)

    @property
    def ok(self) -> bool:
        """Whether the sampler has mixed and all variables agree with it."""
        return self.mixed and all(row.agrees for row in self.rows)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if not self.mixed:
            worst = max(self.rows, key=lambda row: np.nanmax(row.rhat, initial=1.0))
            return (
                f"{self.by} has not mixed ('{worst.name}': R-hat {np.nanmax(worst.rhat):.2f}, {self.divergences} "
                "divergences), so it proves nothing yet: give more draws=, or reparametrise; classes that are alike "
                "need an order."
            )
        off = [row for row in self.rows if not row.agrees]
        if not off:
            return f"agrees with {self.by}: means within 0.1 sd, sds within 10 %, beyond the sampler's own error."
        texts = [f"'{r.name}' (means off by up to {_worst(r.shift):.2f} sd, sd ratio {_far(r.ratio):.2f})" for r in off]
        return f"differs from {self.by} in {', '.join(texts)}. posterior.trust() tells why."

    def __str__(self) -> str:
        theirs = f"{self.by + ' mean':>12}{self.by + ' sd':>11}"
        head = f"{'variable':<16}{'mean':>12}{'sd':>11}{theirs}{'shift':>8}{'sd ratio':>9}"
        lines = [head + f"{'R-hat':>7}{'ESS':>7}"]
        for row in self.rows:
            for i in range(min(len(row.mean), 4)):
                label = row.name if len(row.mean) == 1 else f"{row.name}[{i}]"
                lines.append(
                    f"{label:<16}{row.mean[i]:>12.4g}{row.sd[i]:>11.3g}{row.nuts_mean[i]:>12.4g}{row.nuts_sd[i]:>11.3g}"
                    f"{row.shift[i]:>8.2f}{row.ratio[i]:>9.2f}{row.rhat[i]:>7.2f}{row.ess[i]:>7.0f}"
                )
            if len(row.mean) > 4:
                lines.append(
                    f"{row.name + '[...]':<16}{len(row.mean) - 4} more; all: shift up to {_worst(row.shift):.2f}, "
                    f"sd ratio {np.nanmin(row.ratio):.2f} to {np.nanmax(row.ratio):.2f}"
                )
        if self.summed:
            lines.append(f"Summed out, not compared: {', '.join(self.summed)}")
        return "\n".join([*lines, f"Verdict: {self.verdict}"])

    __repr__ = __str__


def _worst(values: np.ndarray) -> float:
    return float(np.nanmax(np.abs(values)))


def _far(ratio: np.ndarray) -> float:
    return float(ratio[np.nanargmax(np.abs(np.log(ratio)))])


def check(
    posterior: Inferred,
    *,
    draws: int = 1000,
    warmup: int | None = None,
    chains: int = 4,
    seed: int = 0,
) -> Check:
    """Runs NUTS on the model's own joint log density and compares means and sds; see `Check`.

    `draws` after `warmup` steps (as many by default) in each of `chains` chains, which start from draws of the beliefs.
    Discrete variables are summed out. Errors: ModelError for counts below one, UnsupportedError without NumPyro (extra
    `mcmc`) or for a model without a smooth joint density. Source: hoffman2014nuts, phan2019numpyro.
    """
    check_counts("check", draws=draws, chains=chains, warmup=draws if warmup is None else warmup)
    seed, density = seed_of(seed), density_of(posterior)
    if density.hard:
        raise UnsupportedError(
            f"NUTS cannot follow the constraint '{density.hard[0]}', where the density jumps to zero. Give the "
            "compared quantity Gaussian noise of its own, as the margin of the skills model: it is integrated out then."
        )
    if not density.names:
        raise UnsupportedError("No continuous latent variable is left once the others are summed or integrated out.")
    mcmc, nuts = _numpyro()
    with double_precision(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPyro's making
        call = functions(density)
        start = belief_draws(density, call, posterior, seed).z[:chains]
        data = {name: jax.numpy.asarray(array) for name, array in density.contents.data.items()}
        sampler = mcmc(
            nuts(potential_fn=lambda z: -density.height(z, data)),
            num_warmup=draws if warmup is None else warmup,
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        key = jax.random.key(seed)
        sampler.run(key, init_params=start if chains > 1 else start[0], extra_fields=("diverging",))
        z = np.asarray(sampler.get_samples(group_by_chain=True)).reshape(chains * draws, -1)
        divergences = int(np.sum(sampler.get_extra_fields()["diverging"]))
        values = call.constrain(z)
    samples = {name: array.reshape(chains, draws, *array.shape[1:]) for name, array in values.items()}
    rows = tuple(row_of(name, posterior[name], samples[name]) for name in density.names)
    return Check(rows, samples, divergences, density.summed)


def _numpyro() -> tuple[type[MCMC], type[NUTS]]:
    try:
        from numpyro import infer  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise UnsupportedError(
            "A check against NUTS needs NumPyro, which is not installed: pip install 'cavity[mcmc]'. "
            "posterior.trust() needs nothing beyond the library."
        ) from missing
    return infer.MCMC, infer.NUTS


def row_of(name: str, marginal: Marginal, samples: np.ndarray, chances: bool = False) -> Row:
    """A variable's marginal beside draws of it, shaped chains + draws + its own shape."""
    from numpyro import diagnostics  # pyright: ignore[reportMissingImports]

    flat = samples.reshape(*samples.shape[:2], -1)
    with np.errstate(all="ignore"):
        rhat = (
            np.asarray(diagnostics.split_gelman_rubin(flat)) if flat.shape[1] >= 4 else np.full(flat.shape[2], np.nan)
        )
        ess = np.asarray(diagnostics.effective_sample_size(flat))
    both = flat.reshape(-1, flat.shape[-1])
    return Row(name, marginal.mean.ravel(), marginal.sd.ravel(), both.mean(0), both.std(0, ddof=1), rhat, ess, chances)
