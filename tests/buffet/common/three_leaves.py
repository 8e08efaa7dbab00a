"""Two trees of three leaves at infinity: with next of kin, and with all branches at the root."""

import numpy as np

from cavity.models.trees.tree import Tree

LATE = np.full(3, np.inf)
PAIR = Tree(np.array([3, 3, 4, 4, -1]), np.append(LATE, [1.2, 0.5]))  # leaves 0 and 1 are next of kin
STAR = Tree(np.array([3, 3, 3, -1]), np.append(LATE, 0.0))
