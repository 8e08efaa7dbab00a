"""Values and moments of expressions over plates, from data and beliefs; natural parameters; blocks of rows."""
