"""Links: functions that factors take inside their arguments, with the moments and bounds that they offer."""
