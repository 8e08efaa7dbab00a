"""Proposals of births and deaths: how soon a chain finds its factors, and how well it mixes (X-4, K-24; section 3.3.2).

Data on the connectivity of E. coli (16 factors). A row's own factors are proposed from the prior, from a mixture with a
spike at one, or from a Poisson law of a multiple of the prior's rate. Chains from no factor: sweeps until 15 and 16 are
reached, medians over chains. Chains from principal components: effective draws of log likelihood and number of factors
for each second, by ArviZ. The thesis: some 400 sweeps with the prior; with a spike of 0.1, 15 factors in 100 and 500
more for the 16th; with a multiplier of 10, 16 factors in 200, and few acceptances beyond. The report, with other data:
5000 sweeps with the prior, 1500 with the spike, and a multiplier of 50 noisy and dear.

    python benchmarks/nsfa/proposals.py --data DIR [--quick] [--seed 0] [--out DIR]
"""

import common

# isort: split
import numpy as np
import sets
from serial_sweep import serial

from cavity.engine.plots.figure import clean, new_figure
from cavity.models.sparse.kernels import parallel
from cavity.models.sparse.settings import family

PROPOSALS = {
    "prior": {},
    "spike 0.1": {"spike": 0.1},
    "multiplier 10": {"multiplier": 10.0},
    "multiplier 50": {"multiplier": 50.0},
    "spike 0.1, multiplier 10": {"spike": 0.1, "multiplier": 10.0},
}
PAPERS = {
    "prior": "thesis: 400; report: 5000",
    "spike 0.1": "thesis: 15 at 100, 16 at 600; report: 1500",
    "multiplier 10": "thesis: 16 at 200",
    "multiplier 50": "report: noisy, dear",
}


def first_at(counts, size):
    """(chains,) the first sweep with at least so many factors; inf where there was none."""
    reached = counts >= size
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def effective(run):
    """Effective draws for each CPU second, all chains: of log likelihood and of the number of factors."""
    import arviz

    sizes = arviz.ess(run.found.to_arviz())
    seconds = np.diff(run.found.chains.seconds[:, [0, -1]]).sum()
    return [float(sizes[name]) / seconds for name in ("log_likelihood_of_data", "number_of_factors")]


def experiment(problem, seed, sweeps, chains):
    """{(sweep, proposal): numbers}, and the numbers of factors of all chains from no factor."""
    found, counts = {}, {}
    for sweep, kernel in (("parallel", parallel), ("serial", serial)):
        for name, proposal in PROPOSALS.items():
            settings, how = family("nsfa", start="empty", **proposal), {"keep": "summaries", "sweep": kernel}
            run = common.sample(problem.values, settings, seed, sweeps, sweeps, chains=chains, **how)
            counts[sweep, name] = run.factors
            late = run.found["acceptance"][:, -1].mean()
            settings = family("nsfa", **proposal)
            mixed = common.sample(problem.values, settings, seed, sweeps, sweeps // 2, chains=4, **how)
            found[sweep, name] = {
                "15": float(np.median(first_at(run.factors, 15))), "16": float(np.median(first_at(run.factors, 16))),
                "last": float(run.factors[:, -sweeps // 4 :].mean()), "acceptance": float(late), "warm": mixed.warm,
                "factors": float(mixed.factors.mean()), "effective": effective(mixed),
            }  # fmt: skip
            print(f"{sweep}, {name}: {found[sweep, name]}", flush=True)
    return found, counts


def picture(counts, truth=16):
    """Means over chains of the numbers of factors."""
    figure = new_figure(8.0, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, sweep in zip(panels, ("parallel", "serial"), strict=True):
        clean(axes)
        for name in PROPOSALS:
            mean = counts[sweep, name].mean(axis=0)
            axes.plot(np.arange(1, len(mean) + 1), mean, linewidth=1.2, label=name)
        axes.axhline(truth, color="0.6", linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_xlabel("sweep", fontsize=9)
        axes.set_title(f"{sweep} sweeps from no factor", fontsize=10)
    panels[0].set_ylabel("number of factors, mean over chains", fontsize=9)
    panels[0].legend(fontsize=7, frameon=False)
    return figure


def main():
    arguments = common.options(__doc__).parse_args()
    sweeps, chains = (400, 2) if arguments.quick else (1500, 8)
    problem = sets.regulated(sets.connectivity(arguments), np.random.default_rng((arguments.seed, 0)))
    found, counts = experiment(problem, arguments.seed, sweeps, chains)
    rows = []
    for (sweep, name), one in found.items():
        numbers = [one[what] for what in ("15", "16", "last", "acceptance", "warm", "factors")]
        rows.append([f"{sweep}, {name}", *numbers, *one["effective"], PAPERS.get(name, "")])
    columns = ["births", "to 15", "to 16", "K at the end", "accepted", "ms/sweep", "K", "ESS/s log lik.", "ESS/s of K"]
    common.table(f"{chains} chains of {sweeps} sweeps from no factor; 4 from components", [*columns, "papers"], rows)
    kept = {", ".join(name): one for name, one in found.items()}
    common.save(arguments, "proposals", {"proposals": picture(counts)}, sweeps=sweeps, found=kept, papers=PAPERS)


if __name__ == "__main__":
    main()
