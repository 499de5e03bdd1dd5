"""``python -m ocf`` is the command ``ocf``."""

from ocf.cli import main

if __name__ == "__main__":
    main()
