"""An empty picture of the size that all renders have.

Pillow draws (the extra `render`); it is imported when a picture is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw

WIDTH, HEIGHT = 640, 480
"""Pixels of every picture: frames of one film have one size."""
INK, PAPER = (32, 32, 32), (255, 255, 255)


def blank() -> tuple[Image, ImageDraw]:
    """Return a white picture of `WIDTH` times `HEIGHT`, and what draws on it.

    Raises:
        ImportError: there is no Pillow.
    """
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise ImportError(
            "drawing needs Pillow: pip install 'mars-envs[render]', or render_mode='ansi'"
        ) from error
    image = Image.new("RGB", (WIDTH, HEIGHT), PAPER)
    return image, ImageDraw.Draw(image)
