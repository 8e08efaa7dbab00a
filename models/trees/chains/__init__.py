"""The state and the moves of chains over trees."""
