"""The reader of PTX: from text to functions, instructions and variables."""
