"""A Jupyter server extension, which makes keys in live terminals echo sooner. Nothing depends on it.

The server sends what a kernel says as many small packets and lets each wait for the page's acknowledgement of the one
before (Nagle's algorithm), which browsers hold back for 40 ms. Here its connections are told not to wait. A file of
this package in Jupyter's configuration switches it on; ``jupyter server extension disable session_magics.server``
switches it off.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from typing import Any


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    """Where the server looks for the function below."""
    return [{"module": "session_magics.server"}]


def _load_jupyter_server_extension(app: Any) -> None:
    """Have each connection of a page to a kernel send at once."""
    try:
        handler: Any = importlib.import_module("jupyter_server.services.kernels.websocket").KernelWebsocketHandler
        opened = handler.open
    except (ImportError, AttributeError) as error:
        app.log.info("session-magics: connections to kernels stay as they are, this server has others: %s", error)
        return

    @functools.wraps(opened)
    def open_at_once(self: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):  # a connection that works slowly is better than none
            self.set_nodelay(True)
        return opened(self, *args, **kwargs)

    handler.open = open_at_once
