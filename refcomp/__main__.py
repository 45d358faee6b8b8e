"""`python -m refcomp`: the command line where the command `refcomp` is not on PATH."""

from refcomp.cli.group import main

if __name__ == "__main__":
    main(prog_name="refcomp")
