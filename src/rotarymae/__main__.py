"""`python -m rotarymae` is the command `rotarymae`."""

from rotarymae.cli.main import main

if __name__ == "__main__":
    main()
