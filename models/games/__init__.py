"""Ratings of players from games: the models of skills, how games are read, and the estimator `Skills`."""
