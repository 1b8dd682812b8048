"""The guest image: an interpreter and its standard library, and nothing else.

No shell, no package manager, no setuid file. `build.ensure_image` makes it on first use, from the
interpreter that runs here or, where that cannot run in the engine, from a registry's Python image.
"""
