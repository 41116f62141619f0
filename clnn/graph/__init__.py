"""Floor 2: the operator table, lazy nodes, fusion and code generation."""
