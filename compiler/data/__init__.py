"""Data of a model: checked and bound to sizes before anything is compiled."""
