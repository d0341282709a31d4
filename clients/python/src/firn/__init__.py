"""Unique 64-bit ids from the shared page of this host.

One process of the host, the agent, serves the page, which is a file. Every other process takes ids from it:

    ids = firn.open("/run/firn/page")
    ids.next()

A page can be used by many threads, and after a fork. It keeps no id between two calls. Ids of one process increase.
"""

import os

from ._page import Busy, Closed, Ended, Error, NoPage, Page, Unusable

__all__ = ["Busy", "Closed", "Ended", "Error", "NoPage", "Page", "Unusable", "open"]


def open(path, wait=1.0):
    """Opens the page at a path.

    wait is how many seconds a call waits while there is no page that can be used, or no id yet; None: without end.
    """
    return Page(os.path.abspath(path), wait)
