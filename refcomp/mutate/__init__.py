"""Wrong code, made on purpose, to see which comparisons notice it."""
