"""Where a run is: on one device or on several, and what it carries from one to the other."""
