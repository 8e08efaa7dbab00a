"""Player skills by EP: trueskillthroughtime (pure Python), a sequential EP in numba, and cavity; one model.

skill ~ N(0, 0.5), margin ~ N(skill[winner] - skill[loser], 1), margin > 0.
"""

import harness

# isort: split
import math

import numba
import numpy as np
import trueskillthroughtime as ttt
from tournament import VARIANCE, model, tournament

TOLERANCE = 1e-6


@numba.njit(cache=False)
def hazard(t):
    """pdf(t) / cdf(t) of the standard normal; far to the left by its continued fraction, where erfc would underflow."""
    if t > -8.0:
        return math.exp(-0.5 * t * t) * 0.7978845608028654 / math.erfc(-t * 0.7071067811865476)
    fraction = -t
    for k in range(30, 0, -1):
        fraction = -t + k / fraction
    return fraction


@numba.njit(cache=False)
def sequential_ep(winner, loser, players, prior_variance, tolerance, most):
    """One game after the other until no natural parameter of a message moves by more than `tolerance` in a sweep."""
    games = winner.shape[0]
    precision = np.full(players, 1.0 / prior_variance)
    shift = np.zeros(players)
    messages = np.zeros((games, 4))  # precision and shift to the winner, then to the loser
    sweeps = 0
    change = math.inf
    while change > tolerance and sweeps < most:
        sweeps += 1
        change = 0.0
        for g in range(games):
            w, z = winner[g], loser[g]
            old = messages[g]
            pw, hw = precision[w] - old[0], shift[w] - old[1]
            pl, hl = precision[z] - old[2], shift[z] - old[3]
            vw, vl = 1.0 / pw, 1.0 / pl
            mw, ml = hw * vw, hl * vl
            v = vw + vl + 1.0
            sd = math.sqrt(v)
            t = (mw - ml) / sd
            score = hazard(t)
            curvature = score * (score + t) / v
            score /= sd
            # tilted minus cavity without cancellation: precision = c / (1 - c v), shift follows from the tilted mean
            a, b = 1.0 / (1.0 - curvature * vw), 1.0 / (1.0 - curvature * vl)
            new0, new1 = curvature * a, (curvature * mw + score) * a
            new2, new3 = curvature * b, (curvature * ml - score) * b
            change = max(change, abs(new0 - old[0]), abs(new1 - old[1]), abs(new2 - old[2]), abs(new3 - old[3]))
            precision[w], shift[w] = pw + new0, hw + new1
            precision[z], shift[z] = pl + new2, hl + new3
            messages[g, 0], messages[g, 1], messages[g, 2], messages[g, 3] = new0, new1, new2, new3
    return shift / precision, 1.0 / precision, sweeps


def through_time(winner, loser):
    """The package's history with all games at one time, which makes its model equal to ours."""
    games = [[[str(one)], [str(other)]] for one, other in zip(winner.tolist(), loser.tolist(), strict=True)]
    history = ttt.History(
        games, times=[0] * len(games), mu=0.0, sigma=math.sqrt(VARIANCE), beta=math.sqrt(0.5), gamma=0.0
    )
    history.convergence(epsilon=TOLERANCE, verbose=False)
    curves = history.learning_curves()
    return {int(name): curve[-1][1] for name, curve in curves.items()}


def distance(mean, variance, exact_mean, exact_variance):
    """Largest difference of the posterior's natural parameters from those of the fixed point."""
    precision, exact_precision = 1.0 / variance, 1.0 / exact_variance
    shift = np.abs(mean * precision - exact_mean * exact_precision).max()
    return f"{max(shift, np.abs(precision - exact_precision).max()):.1e}"


def contest(report, players, games, arguments, with_package):
    winner, loser = tournament(players, games)
    found, runs = {}, {}

    def package():
        skills = through_time(winner, loser)
        mean, variance = np.zeros(players), np.full(players, VARIANCE)
        for player, belief in skills.items():
            mean[player], variance[player] = belief.mu, belief.sigma**2
        found["trueskillthroughtime"] = mean, variance

    def compiled_loop(tolerance):
        def run():
            found[f"numba {tolerance}"] = sequential_ep(winner, loser, players, VARIANCE, tolerance, 2000)

        return run

    if with_package:
        runs["trueskillthroughtime"] = package
    # A step of 1e-6 leaves a distance of 1e-4 from the fixed point; the smaller step leaves about 1e-6.
    runs["numba EP, step 1e-8"] = compiled_loop(1e-8)
    runs["numba EP, step 1e-6"] = compiled_loop(TOLERANCE)
    if not arguments.peers:
        import cavity as cv

        program = cv.compile(model(cv), observed=[], method="ep", sizes={"player": players}, trace_evidence=False)

        def ours():
            posterior = program({"winner": winner, "loser": loser})
            found["cavity"] = posterior["skill"].mean, posterior["skill"].variance, posterior.iterations

        runs["cavity"] = ours
    result = harness.compare(f"Skills, {players} players, {games} games", runs, arguments.repeats, arguments.budget)
    exact = sequential_ep(winner, loser, players, VARIANCE, 1e-13, 2000)[:2]
    facts = {f"distance from the fixed point, {name}": distance(*each[:2], *exact) for name, each in found.items()}
    facts |= {f"sweeps, {name}": each[2] for name, each in found.items() if len(each) > 2}
    report.add(result, **facts)


def main():
    parser = harness.options(__doc__)
    parser.add_argument("--small", action="store_true", help="only the small tournament")
    arguments = parser.parse_args()
    report = harness.Report("skills", tolerance=TOLERANCE, **vars(arguments))
    contest(report, 100, 1_800, arguments, with_package=True)
    if not arguments.small:
        contest(report, 10_000, 200_000, arguments, with_package=False)


if __name__ == "__main__":
    main()
