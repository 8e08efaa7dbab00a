"""Passes, each from a draft of the plan to the next; `plan` gives their order."""
