"""MARS²: several coders grow one shared search tree of programs."""
