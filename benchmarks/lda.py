"""Latent Dirichlet allocation by VMP, time per iteration: NumPy over (document, word) pairs and tokens, and cavity.

theta_d ~ Dirichlet(0.5), phi_t ~ Dirichlet(0.1), 10 topics; each token has a topic of its document and a word of its
topic. 1000 documents, 71,864 tokens. Infer.NET's CPU time for the first 20 iterations, compiled code but with its first
execution, was measured in a process of its own on a machine like ours and is quoted; from its start NumPy reproduces
its topics after 100 iterations, so the bound there is Infer.NET's.
"""

import harness

# isort: split
import functools

import numpy as np
import reference_runs
from scipy.special import digamma, gammaln

RUN = "infernet_lda"
TOPICS, WORDS, DOCUMENTS = 10, 1000, 1000
THETA, PHI = 0.5, 0.1
INFER_NET_MS = 12816.057 / 20
INFER_NET_ITERATIONS = 100


def data(seed=0):
    """Document, word and count of each pair, in order of documents."""
    found = reference_runs.path(RUN, "docs_1000_ldac_seed0.txt")
    if found is not None:
        lines = [line.split()[1:] for line in found.read_text().splitlines()]
        pairs = [(d, *map(int, pair.split(":"))) for d, line in enumerate(lines) for pair in line]
        return tuple(np.array(pairs).T)
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(WORDS, PHI), size=TOPICS)
    counts = np.array(
        [rng.multinomial(1 + rng.poisson(71.0), rng.dirichlet(np.full(TOPICS, THETA)) @ phi) for _ in range(DOCUMENTS)]
    )
    document, word = np.nonzero(counts)
    return document, word, counts[document, word]


def expected_log(concentration):
    return digamma(concentration) - digamma(concentration.sum(-1, keepdims=True))


def divergence(concentration, prior):
    """KL from the Dirichlets with a flat prior concentration, summed."""

    def log_normaliser(c):
        return gammaln(c).sum(-1) - gammaln(c.sum(-1))

    before = np.full_like(concentration, prior)
    gain = ((concentration - before) * expected_log(concentration)).sum(-1)
    return (gain - log_normaliser(concentration) + log_normaliser(before)).sum()


def counted(document, word, weights):
    """Counts of topics by document, and of words by topic."""
    starts = np.flatnonzero(np.diff(document, prepend=-1))
    by_document = np.zeros((DOCUMENTS, TOPICS))
    by_document[document[starts]] = np.add.reduceat(weights, starts, axis=0)
    by_topic = np.stack([np.bincount(word, weights[:, t], WORDS) for t in range(TOPICS)])
    return THETA + by_document, PHI + by_topic


def sweep(document, word, count, theta, phi):
    """New concentrations of theta and phi, and the bound at the old ones with the topics of tokens at their optimum."""
    scores = expected_log(theta)[document] + expected_log(phi).T[word]
    top = scores.max(1, keepdims=True)
    np.exp(scores - top, out=scores)
    total = scores.sum(1, keepdims=True)
    bound = count @ (top + np.log(total))[:, 0] - divergence(theta, THETA) - divergence(phi, PHI)
    scores *= count[:, None] / total
    return *counted(document, word, scores), bound


def floor(pairs, iterations, topic_of_document):
    """VMP in NumPy from tokens that all have their document's first topic."""
    document, word, count = pairs
    theta, phi = counted(document, word, np.eye(TOPICS)[topic_of_document[document]] * count[:, None])
    bound = -np.inf
    for _ in range(iterations):
        last = phi
        theta, phi, bound = sweep(document, word, count, theta, phi)
    return last, bound


def tokens(pairs):
    """Each token as a pair of its own."""
    document, word, count = pairs
    return np.repeat(document, count), np.repeat(word, count), np.ones(count.sum())


def model(cv):
    m = cv.Model("latent Dirichlet allocation")
    topic, doc, token = m.plate("topic", TOPICS), m.plate("doc", DOCUMENTS), m.plate("token")
    document = m.input("document", cv.index(doc), plates=token)
    theta = m.random("theta", cv.dirichlet(np.full(TOPICS, THETA)), plates=doc)
    phi = m.random("phi", cv.dirichlet(np.full(WORDS, PHI)), plates=topic)
    z = m.random("z", cv.categorical(theta[document]))
    m.random("word", cv.categorical(phi[z]))
    return m


def main():
    parser = harness.options(__doc__)
    parser.set_defaults(repeats=3)
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--most", type=int, default=400, help="limit of the run to the reference's bound")
    arguments = parser.parse_args()
    report = harness.Report("lda", **vars(arguments))
    pairs = data()
    each = tokens(pairs)
    start = reference_runs.column(RUN, "theta_init_T10.csv", heading=0)
    start = np.random.default_rng(1).integers(TOPICS, size=DOCUMENTS) if start is None else start.astype(int)
    phi, reference = floor(pairs, INFER_NET_ITERATIONS, start)
    facts = {"bound of the reference after 100 iterations": float(reference)}
    printed = reference_runs.column(RUN, "posterior_phi_T10.csv", 1)
    if printed is not None:
        distance = abs(phi / phi.sum(1, keepdims=True) - printed.reshape(TOPICS, WORDS)).max()
        if distance > 1e-7:
            raise SystemExit(f"NumPy does not reproduce Infer.NET's topics: {distance:.1e} apart")
        facts["NumPy from Infer.NET's topics"] = float(distance)
    facts["Infer.NET, ms per iteration"] = INFER_NET_MS

    def numpy_run(rows):
        floor(rows, arguments.iterations, start)
        return arguments.iterations

    runs = {"NumPy, pairs": functools.partial(numpy_run, pairs), "NumPy, tokens": functools.partial(numpy_run, each)}
    if not arguments.peers:
        facts |= against_reference(pairs, each, reference, arguments.most)
        program = cavity_program(each, max_iterations=arguments.iterations)
        runs["cavity, tokens"] = lambda: int(program({"document": each[0], "word": each[1]}).iterations)
    title = f"LDA, {len(each[0])} tokens, {TOPICS} topics, per iteration"
    report.add(harness.compare(title, runs, arguments.repeats, arguments.budget), **facts)


def cavity_program(each, **settings):
    import cavity as cv

    return cv.compile(model(cv), observed=["word"], method="vmp", sizes={"token": len(each[0])}, **settings)


def against_reference(pairs, each, reference, most):
    """Our bound is that of our topics by another program, and no worse than the reference's: in how many sweeps."""
    posterior = cavity_program(each, max_iterations=most)({"document": each[0], "word": each[1]})
    theta, phi = (np.asarray(posterior[name].parameters["concentration"]) for name in ("theta", "phi"))
    apart = abs(sweep(*pairs, theta, phi)[2] - posterior.log_evidence)
    bounds = np.asarray(posterior.trace.evidence)
    if apart > 1e-6 or not np.nanmax(bounds) >= reference:
        raise SystemExit(f"cavity's bound {posterior.log_evidence} is {apart:.1e} off, or below {reference}")
    return {
        "cavity's bound, by NumPy at its topics": float(apart),
        f"cavity's bound in {posterior.iterations} sweeps": posterior.log_evidence,
        "cavity, sweeps to the bound of the reference": int(np.argmax(np.nan_to_num(bounds, nan=-np.inf) >= reference))
        + 1,
    }


if __name__ == "__main__":
    main()
