"""Loop IR to text in an output language: decides what to say; templates/ spells it."""
