"""Trees as structures: parents, branches, drawings, formats, consensus."""
