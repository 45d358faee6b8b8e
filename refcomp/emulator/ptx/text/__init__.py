"""PTX as text, and as the data that is read from it."""
