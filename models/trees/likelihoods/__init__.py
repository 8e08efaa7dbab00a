"""The likelihood of leaves on a tree: sites, times, locations and the mass of a tree."""
