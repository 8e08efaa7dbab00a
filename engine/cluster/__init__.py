"""Many processes: started on one machine, given work and told apart, their rows and where they stopped."""
