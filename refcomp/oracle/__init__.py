"""The judge: the meaning of every layer, written plainly and apart from what it judges."""
