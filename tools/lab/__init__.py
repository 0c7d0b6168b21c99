"""The `./lab` command: packages, builds, models and chapters. Standard library only."""
