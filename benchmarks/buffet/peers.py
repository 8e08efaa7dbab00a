"""Hidden entries of six real data sets predicted by BinaryFeatures and by models of scikit-learn, with the CPU time.

A tenth of the entries is hidden. Peers that take no gaps get them by imputation: column means, a fit, what it gives
for the gaps, another fit, eight times. Their number of components is the one of 5, 10, 20 and 40 that predicts another
tenth best, and the deviations of their errors there are their noise, but for FactorAnalysis, which has the
conditional density of each hidden entry given what is seen of its row. RBM and NMF see data moved to begin at 0, RBM
also scaled to end at 1; for booleans all predictions are probabilities between .005 and .995. Times are of all that it
took, the choice of the number included. BinaryFeatures chooses its number itself and averages over draws.
"""

import common

# isort: split
import csv
import functools
import warnings

import harness
import jax
import numpy as np
import reference_runs
import sets
from scipy.stats import norm
from sklearn.decomposition import NMF, FactorAnalysis
from sklearn.neural_network import BernoulliRBM

from cavity.models import BinaryFeatures
from cavity.models.buffet.likelihoods import LinearGaussian
from cavity.models.buffet.likelihoods.linear_gaussian import log_marginal
from cavity.models.buffet.samplers.accelerated import accelerated
from cavity.models.buffet.samplers.law import Law

SIZES, ROUNDS = (5, 10, 20, 40), 8


def filled(values, gaps):
    """With the mean of its column in each gap."""
    seen = np.where(gaps, np.nan, values)
    return np.where(gaps, np.nanmean(seen, axis=0), values)


def by_means(values, gaps, size, seed):
    return filled(values, gaps)


def by_nmf(values, gaps, size, seed):
    least, now = values[~gaps].min(), filled(values, gaps)
    for _ in range(ROUNDS):
        model = NMF(size, init="nndsvda", random_state=seed, max_iter=200)
        fit = model.fit_transform(np.maximum(now - least, 0.0)) @ model.components_ + least
        now = np.where(gaps, fit, values)
    return fit


def by_rbm(values, gaps, size, seed):
    least, most = values[~gaps].min(), values[~gaps].max()
    now = (filled(values, gaps) - least) / (most - least)
    given = now.copy()
    for _ in range(ROUNDS):
        model = BernoulliRBM(size, learning_rate=0.05, batch_size=10, n_iter=20, random_state=seed).fit(now)
        fit = 1.0 / (1.0 + np.exp(-model.transform(now) @ model.components_ - model.intercept_visible_))
        now = np.where(gaps, fit, given)
    return least + (most - least) * fit


def factor_analysis(values, gaps, size, seed):
    now = filled(values, gaps)
    for _ in range(ROUNDS):
        model = FactorAnalysis(size, random_state=seed).fit(now)
        now = np.where(gaps, model.transform(now) @ model.components_ + model.mean_, values)
    return model


def by_factors(values, gaps, size, seed):
    """Conditional means given what is seen of each row."""
    return conditional(factor_analysis(values, gaps, size, seed), values, gaps)[0]


def conditional(model, values, gaps):
    """Means and deviations of all entries given what is seen, by the factors' posterior for each row."""
    loading, noise = model.components_, model.noise_variance_
    weight = np.where(gaps, 0.0, 1.0 / noise)
    precision = np.eye(len(loading)) + np.einsum("kd,nd,ld->nkl", loading, weight, loading, optimize=True)
    covariance = np.linalg.inv(precision)
    factors = np.einsum("nkl,nl->nk", covariance, (weight * (values - model.mean_)) @ loading.T)
    variance = noise + np.einsum("kd,nkl,ld->nd", loading, covariance, loading, optimize=True)
    return factors @ loading + model.mean_, np.sqrt(variance)


PEERS = {"column means": by_means, "NMF": by_nmf, "BernoulliRBM": by_rbm, "FactorAnalysis": by_factors}


def scores(table, gaps, mean, sd=None):
    """Root of the mean squared error of hidden entries, and their mean log density."""
    value, mean = table.values[gaps], mean[gaps]
    error = np.sqrt(np.mean((value - mean) ** 2))
    if table.kind == "bernoulli":
        p = np.clip(mean, 0.005, 0.995)
        return error, np.mean(np.where(value > 0.5, np.log(p), np.log1p(-p)))
    return error, np.mean(norm.logpdf(value, mean, sd if np.ndim(sd) == 0 else sd[gaps]))


def peer(name, table, gaps, seed):
    """Error, log density, CPU seconds and the number of components of one of them."""
    cpu, fit = harness.cpu_seconds(), PEERS[name]
    others = common.hidden(table.values.shape, 0.1, seed + 1) & ~gaps
    sizes = [1] if fit is by_means else [size for size in SIZES if size <= min(table.values.shape)]
    errors = [fit(table.values, gaps | others, size, seed)[others] - table.values[others] for size in sizes]
    best = int(np.argmin([np.mean(error**2) for error in errors]))
    sd = float(np.std(errors[best]))
    if fit is by_factors:
        model = factor_analysis(table.values, gaps, sizes[best], seed)
        mean, sd = conditional(model, table.values, gaps)
    else:
        mean = fit(table.values, gaps, sizes[best], seed)
    return *scores(table, gaps, mean, sd), harness.cpu_seconds() - cpu, str(sizes[best]) if len(sizes) > 1 else "-"


def ours(table, gaps, sweeps, seed):
    """The same of `BinaryFeatures`, by the draws that it keeps."""
    cpu = harness.cpu_seconds()
    model = BinaryFeatures(table.kind, n_sweeps=sweeps, n_draws=sweeps // 2, random_state=seed)
    model.fit(np.where(gaps, np.nan, table.values))
    mean = model.chains_.reconstruction * model.scale_ + model.mean_
    cpu = harness.cpu_seconds() - cpu
    inside, logs = (table.values - model.mean_) / model.scale_, -np.inf
    likelihood, (chains, draws) = model.chains_.sampler.likelihood, model.chains_.shape
    with jax.enable_x64(True):
        for draw in model.chains_.draws():
            each = likelihood.log_entry(inside, draw.active @ draw.values, draw.numbers)
            logs = np.logaddexp(logs, np.asarray(each)[gaps])
    density = logs - np.log(chains * draws) - np.log(model.scale_)
    error = np.sqrt(np.mean((mean - table.values)[gaps] ** 2))
    return error, density.mean(), cpu, f"{model.chains_['number_of_features'].mean():.1f}"


def compared(report, arguments, sweeps):
    """A table for each data set."""
    note = "Hidden entries: root of the mean squared error, mean log density in nats; CPU seconds; components."
    columns = ("", "error", "log density", "CPU s", "components")
    for name, table in sets.real(arguments, arguments.rows).items():
        if arguments.sets and name not in arguments.sets:
            continue
        gaps = common.hidden(table.values.shape, 0.1, arguments.seed)
        runs = {each: functools.partial(peer, each) for each in PEERS}
        found = {each: run(table, gaps, arguments.seed) for each, run in runs.items()}
        found["BinaryFeatures"] = ours(table, gaps, sweeps, arguments.seed)
        lines = [[each, *map(common.shown, values[:3]), values[3]] for each, values in found.items()]
        shape = " x ".join(map(str, table.values.shape))
        report.table(f"{name}, {shape}", note, columns, lines, found)


def reference(number):
    """The last matrix of a run of PyIBP and its lines, one for each sweep; None without a copy."""
    paths = [reference_runs.path("ibp_block_images", f"pyibp_seed{number}_{what}.csv") for what in ("Z", "trace")]
    if None in paths:
        return None
    with open(paths[1], newline="") as file:
        return np.loadtxt(paths[0], delimiter=",") > 0.5, list(csv.DictReader(file))


def line(values, name, seconds, active, noise, own):
    """Of the table: the log likelihood has the values of features integrated out."""
    with jax.enable_x64(True):
        log = float(log_marginal(values, active, {"noise_precision": noise, "value_precision": own}))
    return [name, common.shown(seconds), str(active.shape[1]), f"{log:.1f}", common.shown(noise**-0.5)]


def beside_pyibp(report, arguments):
    """Chains on the same images: features, log likelihood without values, time."""
    values = sets.block_images(arguments)
    values = values - values.mean(axis=0)
    lines = []
    for number in (1, 2, 3):
        run = common.sample(values, number, 1000, 1000, LinearGaussian(), Law(), accelerated, chains=1)
        for sweeps in (60, 1000):
            draw = run.found.draw(0, sweeps - 1)
            numbers = [float(draw.numbers[name]) for name in ("noise_precision", "value_precision")]
            lines.append(line(values, f"cavity, chain {number}, sweep {sweeps}", run.sweep, draw.active, *numbers))
        if theirs := reference(number):
            active, trace = theirs
            seconds = float(np.median([float(each["cpu_s"]) for each in trace]))
            numbers = [float(trace[-1][name]) ** -2.0 for name in ("sigma_x", "sigma_a")]
            lines.append(line(values, f"PyIBP, chain {number}, sweep 60", seconds, active, *numbers))
    note = (
        "1000 images with four shapes and noise of 0.2, one chain from a draw of the prior each; PyIBP as it was run "
        "on another day on a machine of the same kind, under gamma priors of standard deviations, not precisions. Log "
        "likelihoods of both by one function, the values of features integrated out."
    )
    columns = ("", "CPU s a sweep", "features", "log likelihood", "noise")
    report.table("Block images beside PyIBP", note, columns, lines, lines)


def main():
    parser = common.options(__doc__.splitlines()[0])
    parser.add_argument("--sweeps", type=int, default=40, help="of each of two chains of BinaryFeatures")
    parser.add_argument("--rows", type=int, default=300, help="of each data set at most")
    parser.add_argument("--sets", nargs="*", help="names of data sets, all by default; PyIBP is beside block images")
    arguments = parser.parse_args()
    sweeps = 20 if arguments.quick else arguments.sweeps
    warnings.simplefilter("ignore")  # peers that stop before they converge say so at every fit
    report = common.report("peers", arguments, sweeps=sweeps, rows=arguments.rows)
    if not arguments.sets or "block images" in arguments.sets:
        beside_pyibp(report, arguments)
    compared(report, arguments, sweeps)


if __name__ == "__main__":
    main()
