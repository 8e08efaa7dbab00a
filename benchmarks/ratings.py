"""Games to come as foretold by Skills, trueskill, openskill and trueskillthroughtime: log loss and CPU seconds.

Tennis (a quarter of the matches held out, no times), and simulated players whose skills move (the last tenth of games
held out). All have the scales that the games were simulated with; for tennis those that the evidence of Skills chooses.
"""

import harness

# isort: split
import argparse
import math
import time
from pathlib import Path

import numpy as np

GAMES = Path(__file__).parents[1] / "examples" / "data" / "tennis_games.csv"


def simulated(players, games, days, drift, seed=0):
    """Winners, losers and days; skills of variance one at first, then random walks."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=(players, 1)) + drift * np.pad(
        rng.normal(size=(players, days - 1)), ((0, 0), (1, 0))
    ).cumsum(1)
    first = rng.integers(players, size=games)
    second = (first + rng.integers(1, players, size=games)) % players
    day = np.sort(rng.integers(days, size=games))
    wins = skill[first, day] - skill[second, day] + rng.normal(size=games) > 0
    return np.where(wins, first, second), np.where(wins, second, first), day


# Each contestant learns from games, and returns the probability that the winner wins for others -----------------------


def by_skills(spread, drift, joint=None):
    from cavity.models import Skills

    def run(train, test):
        model = Skills(spread=spread, drift=drift, joint=joint)
        model.fit(winners=train[0], losers=train[1], times=train[2])
        return model.predict_proba(test[0], test[1], times=test[2])[:, 0]

    return run


def by_trueskill(spread, drift):
    import trueskill

    peer = trueskill.TrueSkill(mu=0.0, sigma=spread, beta=math.sqrt(0.5), tau=0.0, draw_probability=0.0)

    def run(train, test):
        """Online: each game once, skills widened by the time since the last game."""
        ratings, seen = {}, {}

        def rating(player, day):
            found = ratings.get(player)
            if found is None:
                return peer.create_rating()
            return peer.create_rating(found.mu, math.sqrt(found.sigma**2 + drift**2 * (day - seen[player])))

        for a, b, day in zip(*(column.tolist() for column in train), strict=True):
            ratings[a], ratings[b] = peer.rate_1vs1(rating(a, day), rating(b, day))
            seen[a] = seen[b] = day
        pairs = [(rating(a, day), rating(b, day)) for a, b, day in zip(*(c.tolist() for c in test), strict=True)]
        return normal([(x.mu - y.mu) / math.sqrt(1.0 + x.sigma**2 + y.sigma**2) for x, y in pairs])

    return run


def by_openskill(spread, drift):
    from openskill.models import ThurstoneMostellerFull

    peer = ThurstoneMostellerFull(mu=0.0, sigma=spread, beta=math.sqrt(0.5), kappa=1e-4, tau=0.0)

    def run(train, test):
        ratings, seen = {}, {}

        def rating(player, day):
            found = ratings.get(player)
            if found is None:
                return peer.rating()
            return peer.rating(mu=found.mu, sigma=math.sqrt(found.sigma**2 + drift**2 * (day - seen[player])))

        for a, b, day in zip(*(column.tolist() for column in train), strict=True):
            (one,), (other,) = peer.rate([[rating(a, day)], [rating(b, day)]])
            ratings[a], ratings[b], seen[a], seen[b] = one, other, day, day
        pairs = [(rating(a, day), rating(b, day)) for a, b, day in zip(*(c.tolist() for c in test), strict=True)]
        return np.array([peer.predict_win([[x], [y]])[0] for x, y in pairs])

    return run


def by_history(spread, drift):
    import trueskillthroughtime as ttt

    def run(train, test):
        games = [[[str(a)], [str(b)]] for a, b in zip(train[0].tolist(), train[1].tolist(), strict=True)]
        still = {"gamma": drift, "mu": 0.0, "sigma": spread, "beta": math.sqrt(0.5)}
        history = ttt.History(games, times=train[2].tolist(), **still)
        history.convergence(epsilon=1e-4, iterations=10, verbose=False)
        last = {player: curve[-1] for player, curve in history.learning_curves().items()}

        def place(player, day):
            when, belief = last.get(str(player), (day, ttt.Gaussian(0.0, spread)))
            return belief.mu, belief.sigma**2 + drift**2 * (day - when)

        pairs = [(place(a, day), place(b, day)) for a, b, day in zip(*(c.tolist() for c in test), strict=True)]
        return normal([(x[0] - y[0]) / math.sqrt(1.0 + x[1] + y[1]) for x, y in pairs])

    return run


def normal(values):
    return np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in values])


def contest(report, title, note, train, test, contestants):
    lines, measured = [], {}
    for name, run in contestants.items():
        seconds = []
        for _ in range(2 if name.startswith("Skills") else 1):
            start = time.process_time()
            chance = np.clip(run(train, test), 1e-12, 1.0)
            seconds.append(time.process_time() - start)
        loss, right = float(-np.log(chance).mean()), float((chance > 0.5).mean())
        measured[name] = {"loss": loss, "right": right, "seconds": seconds}
        again = f"{seconds[1]:.3g}" if len(seconds) > 1 else "-"
        lines.append([name, f"{loss:.4f}", f"{right:.3f}", f"{seconds[0]:.3g}", again])
        print(lines[-1], flush=True)
    report.table(title, note, ("", "log loss", "foretold", "CPU s", "CPU s again"), lines, measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="without the 200,000 games")
    parser.add_argument("--times", default="alone", help="how the times were taken, for the page")
    arguments = parser.parse_args()
    report = harness.Report("ratings", **vars(arguments))
    winner, loser = np.loadtxt(GAMES, delimiter=",", skiprows=1, dtype=int).T
    order = np.random.default_rng(0).permutation(len(winner))
    train, test = ((winner[part], loser[part], np.zeros(len(part), int)) for part in (order[450:], order[:450]))
    from cavity.models import Skills

    spread = Skills(spread=None).fit(winners=train[0], losers=train[1]).spread_
    contest(
        report,
        f"Tennis, {len(train[0])} matches of 107 players, {len(test[0])} held out",
        f"Log loss of the held-out winners in nats, the share of them that was foretold, CPU seconds. A spread of "
        f"{spread:.3g} is the one of the largest evidence, which took its own time. Skills keeps all covariances.",
        train,
        test,
        {
            "trueskill": by_trueskill(spread, 0.0),
            "openskill": by_openskill(spread, 0.0),
            "trueskillthroughtime": by_history(spread, 0.0),
            "Skills(joint=False)": by_skills(spread, 0.0, False),
            "Skills": by_skills(spread, 0.0),
        },
    )
    for players, games, days in ((500, 10_000, 50), (2_000, 200_000, 100))[: 1 if arguments.small else 2]:
        columns = simulated(players, games, days, 0.07)
        cut = games - games // 10
        train, test = (tuple(column[part] for column in columns) for part in (slice(cut), slice(cut, None)))
        contestants = {"trueskill": by_trueskill(1.0, 0.07), "openskill": by_openskill(1.0, 0.07)}
        contestants["trueskillthroughtime"] = by_history(1.0, 0.07)
        contestants["Skills"] = by_skills(1.0, 0.07)
        contest(
            report,
            f"{games} simulated games of {players} players on {days} days",
            "As above; drift .07 a day. Skills and trueskillthroughtime smooth over time, the others go through the "
            "games once.",
            train,
            test,
            contestants,
        )


if __name__ == "__main__":
    main()
