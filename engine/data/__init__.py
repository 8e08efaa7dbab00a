"""Data looked at before a run: rules of factors, columns far from zero, statements that cancel."""
