"""Small things that all rooms use: warnings, memory of compiled things, checks of calls, machine code."""
