"""Module files: zip archives, which are written atomically and checked completely when read.

archive.py            a zip archive of a few small files
damage.py             the error for a damaged file
bundle.py             the same members as one text of bytes, for the cache and for objects
manifest.py           the contents of a module file for a host
program_manifest.py   the contents of a module file for a device
suffixes.py           the form of a file that its suffix names
code_tools.py         the tools that make objects and assembly, as the driver registers them
"""
