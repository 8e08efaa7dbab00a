"""What cavity adds around the arithmetic: overhead of a call, batches, compile time, a second process, memory.

No peers here, except that NumPyro's first answer is timed beside cavity's in fresh processes.
"""

import harness

# isort: split
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import jax.monitoring
import numpy as np

COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
compilations = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: compilations.append(seconds) if event == COMPILE_EVENT else None
)


def location_model(cv):
    """Mean and precision of a Gaussian."""
    m = cv.Model("location")
    n = m.plate("n")
    mean = m.random("mean", cv.gaussian(0.0, variance=100.0))
    precision = m.random("precision", cv.gamma(shape=1.0, rate=1.0))
    m.random("x", cv.gaussian(mean, precision=precision), plates=n)
    return m


def location_program(cv, rows):
    return cv.compile(location_model(cv), observed=["x"], method="vmp", sizes={"n": rows})


def draws(rows, seed):
    return np.random.default_rng(seed).normal(3.0, 2.0, size=rows)


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def call_overhead(cv, calls=300):
    """Wall time of `program(data)` on ten numbers, new ones at each call, and the compilations that it caused."""
    program = location_program(cv, 10)
    program({"x": draws(10, 0)})["mean"].mean  # noqa: B018
    before = len(compilations)
    times = [seconds(lambda seed=seed: program({"x": draws(10, seed)})["mean"].mean) for seed in range(1, calls)]
    return {"call ms, median": 1e3 * statistics.median(times), "compilations": len(compilations) - before}


def batch_time(cv, count=1_000):
    """Microseconds for each inference when `program.batch` runs many on ten numbers each."""
    program = location_program(cv, 10)
    datas = [{"x": draws(10, seed)} for seed in range(count)]
    program.batch(datas)
    times = [seconds(lambda: program.batch(datas)) for _ in range(5)]
    return {"batch us each, median": 1e6 * statistics.median(times) / count}


def demo_programs(cv):
    """The models of the demonstration with data of their size: name, program, data."""
    import logistic
    import mixture
    import tournament

    winner, loser = tournament.tournament(107, 1_801)
    sizes = {"player": 107}
    yield "skills", cv.compile(tournament.model(cv), observed=[], sizes=sizes), {"winner": winner, "loser": loser}
    x, y = logistic.data(1_000, 5)
    yield "logistic", cv.compile(logistic.model(cv, 5), observed=["y"]), {"x": x, "y": y}
    yield "mixture", cv.compile(mixture.model(cv), observed=["x"]), {"x": mixture.data(300)}
    table = np.random.default_rng(0).normal(size=(120, 4))
    labels = np.random.default_rng(1).integers(3, size=120)
    yield "softmax", cv.compile(softmax_model(cv, 4, 3), observed=["y"]), {"x": table, "y": labels}


def softmax_model(cv, features, classes):
    m = cv.Model("softmax regression")
    row, cls = m.plate("row"), m.plate("class", classes)
    x = m.input("x", cv.vector(features), plates=row)
    weight = m.random("weight", cv.vector_gaussian(np.zeros(features), covariance=np.eye(features)), plates=cls)
    bias = m.random("bias", cv.gaussian(0.0, variance=1.0), plates=cls)
    score = m.let("score", cv.dot(weight, x) + bias)
    m.random("y", cv.categorical(cv.softmax(score, over=cls)), plates=row)
    return m


def compile_times(cv):
    """First call minus second, for the demonstration's models and for one model at growing size."""
    facts = {}
    for name, program, data in demo_programs(cv):
        facts[f"compile s, {name}"] = seconds(lambda p=program, d=data: p(d)) - seconds(lambda p=program, d=data: p(d))
    for rows in (100, 1_000, 10_000, 100_000):
        program, data = location_program(cv, rows), {"x": draws(rows, 0)}
        facts[f"compile s, location of {rows}"] = seconds(lambda p=program, d=data: p(d)) - seconds(
            lambda p=program, d=data: p(d)
        )
    return facts


def child(task, cache=None):
    """Runs one task of this script in a fresh process; its wall time from the start of Python, and what it printed."""
    environment = dict(os.environ)
    if cache:
        environment |= {
            "JAX_COMPILATION_CACHE_DIR": cache,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
    start = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, "--child", task], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return time.perf_counter() - start, done.stdout.strip()


def first_answers():
    """Wall seconds from starting Python to the first answer: NumPyro, and cavity without and with a warm disk cache."""
    with tempfile.TemporaryDirectory() as cache:
        return {
            "first answer s, NumPyro": child("numpyro")[0],
            "first answer s, cavity, no cache": child("skills")[0],
            "first answer s, cavity, filling the cache": child("skills", cache)[0],
            "first answer s, cavity, cache filled": child("skills", cache)[0],
        }


def child_skills():
    import tournament

    import cavity as cv

    winner, loser = tournament.tournament(107, 1_801)
    cv.infer(tournament.model(cv), {"winner": winner, "loser": loser}, sizes={"player": 107})["skill"].mean  # noqa: B018


def child_numpyro():
    import logistic

    logistic.mcmc_run(*logistic.data(100, 5), 1_000, 1_000)()


def child_memory(rows=10_000_000):
    """Peak memory in MB of ten million scalar observations under VMP, with Python, JAX and the data themselves."""
    import cavity as cv

    posterior = location_program(cv, rows)({"x": draws(rows, 0)})
    assert abs(float(posterior["mean"].mean) - 3.0) < 0.01
    print(round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


CHILDREN = {"skills": child_skills, "numpyro": child_numpyro, "memory": child_memory}


def main():
    parser = harness.options(__doc__)
    parser.add_argument("--child", choices=CHILDREN, help="one task in this process (used by the script itself)")
    arguments = parser.parse_args()
    if arguments.child:
        CHILDREN[arguments.child]()
        return
    report = harness.Report("overhead")
    if arguments.peers:
        report.facts("Peer", **{"first answer s, NumPyro": child("numpyro")[0]})
        return
    import cavity as cv

    report.facts("Calls and batches", **call_overhead(cv), **batch_time(cv))
    report.facts("Compile time", **compile_times(cv))
    report.facts("Fresh processes", **first_answers())
    report.facts("Memory", **{"peak MB, ten million observations": int(child("memory")[1])})


if __name__ == "__main__":
    main()
