"""What a posterior answers: marginals, summaries, predictions, and itself as the next prior."""
