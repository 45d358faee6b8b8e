"""Module files: archives that are written atomically and read with suspicion.

archive.py            a zip archive of a few small files
manifest.py           what a module file for a host holds
program_manifest.py   what a module file for a device holds
"""
