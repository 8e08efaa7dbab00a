"""What each process does for tests/buffet/test_shards.py: chains of four shards, each read by one process alone."""

import json
import os
import sys

import jax
import numpy as np

from cavity.models.buffet.likelihoods import LinearGaussian, NoisyOr, PoissonGamma
from cavity.models.buffet.parallel import sample_in_shards

SHARDS = 4
LIKELIHOODS = {
    "numbers": LinearGaussian(),
    "tags": NoisyOr((19.0, 1.0), (2.0, 8.0), (1.0, 4.0)),
    "counts": PoissonGamma(),
}


def told(found):
    names = {"number_of_features", "noise_precision", "quiet", "attenuation", "share", "base", "log_likelihood"}
    return {name: np.asarray(found[name]).tolist() for name in sorted(names & set(found.chains.draws))}


def main(place, what="numbers", **asked):
    parts = [os.path.join(place, f"part-{number}.npy") for number in range(SHARDS)]
    found = sample_in_shards(parts, jax.random.key(0), 5, LIKELIHOODS[what], warmup=5, progress=False, **asked)
    if jax.process_index() == 0:
        with open(os.path.join(place, f"found-{jax.process_count()}.json"), "w", encoding="utf-8") as file:
            json.dump(told(found), file)


if __name__ == "__main__":
    main(*sys.argv[1:])
