"""`python -m sealane` is the `sealane` command."""

from sealane.cli.main import app

if __name__ == "__main__":
    app(prog_name="sealane")
