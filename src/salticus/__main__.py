"""`python -m salticus`."""

from salticus.cli import main

if __name__ == "__main__":
    main()
