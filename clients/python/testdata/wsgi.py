"""The application of the README, app.py, which also says which process answers, and when it began."""

import os
import time

import app as readme


def app(environ, start_response):
    began = time.monotonic_ns()
    (first,) = readme.app(environ, start_response)
    ids = [int(first)] + readme.ids.batch(9)
    return [("%d %d %s" % (os.getpid(), began, " ".join(map(str, ids)))).encode()]
