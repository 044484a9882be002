"""Run the command as `python -m rotarymae_experiments`."""

from rotarymae_experiments.cli import main

if __name__ == "__main__":
    main()
