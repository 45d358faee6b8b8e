"""`python -m refcomp.cli`: the same as `python -m refcomp`."""

from refcomp.cli.group import main

if __name__ == "__main__":
    main(prog_name="refcomp")
