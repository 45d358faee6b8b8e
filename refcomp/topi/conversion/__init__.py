"""Conversion: casts among dtypes, packed small types, and quantization."""
