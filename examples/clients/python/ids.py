"""Ids of a firn server through redis-py, a block of them fetched ahead:

    python3 ids.py redis://127.0.0.1:6380 photo 10
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import redis


class Ids:
    """Hands out ids of a series, each once, none older than max_age seconds.

    The next block is fetched when half of one is used. What is dropped, because it
    became too old or because its answer was lost, nobody ever gets.
    """

    def __init__(self, client, series, block=1000, max_age=1.0):
        self._client, self._series, self._block, self._max_age = client, series, block, max_age
        self._lock, self._pool = threading.Lock(), ThreadPoolExecutor(1)
        self._born, self._left, self._ahead = 0.0, [], None

    def _fetch(self):
        born = time.monotonic()
        ids = self._client.execute_command("FIRN.NEXT", self._series, self._block)
        return born, [int(i) for i in reversed(ids)]

    def next(self):
        with self._lock:
            while not self._left or time.monotonic() - self._born > self._max_age:
                ahead, self._ahead = self._ahead or self._pool.submit(self._fetch), None
                self._born, self._left = ahead.result()  # raises what the request did
            if self._ahead is None and len(self._left) <= self._block // 2:
                self._ahead = self._pool.submit(self._fetch)
            return self._left.pop()


if __name__ == "__main__":
    url, series, count = sys.argv[1:]
    ids = Ids(redis.Redis.from_url(url), series)
    for _ in range(int(count)):
        print(ids.next())
