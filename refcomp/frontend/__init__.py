"""Frontends: models of other systems become graphs."""
