"""EP for any factor, given its log density: sums, closed forms and quadrature over the arguments of an instance."""
