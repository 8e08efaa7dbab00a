"""What each process does for test_shards_of_factors.py: chains of four shards, each read by one process alone."""

import json
import os
import sys

import jax
import numpy as np

from cavity.models.sparse import family
from cavity.models.sparse.shards import sample_in_shards

SHARDS = 4


def main(place):
    parts = [os.path.join(place, f"part-{number}.npy") for number in range(SHARDS)]
    told = {}
    for integrated in (False, True):
        found = sample_in_shards(
            parts, jax.random.key(0), 6, family("nsfa"), integrated=integrated, warmup=3, progress=False
        )
        told[str(integrated)] = {
            name: np.asarray(found[name]).tolist() for name in ("number_of_factors", "noise", "loading", "factor")
        }
    if jax.process_index() == 0:
        with open(os.path.join(place, f"found-{jax.process_count()}.json"), "w", encoding="utf-8") as file:
            json.dump(told, file)


if __name__ == "__main__":
    main(sys.argv[1])
