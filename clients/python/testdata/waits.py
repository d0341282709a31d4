"""What a call does while it waits for a page: other threads run, a signal ends it, and so does close().

    waits.py PATH: the agent of the page has ended
"""

import os
import signal
import sys
import threading
import time

import firn


class Alarm(Exception):
    pass


def alarm(number, frame):
    raise Alarm


def after(seconds, call):
    t = threading.Thread(target=lambda: (time.sleep(seconds), call()))
    t.start()
    return t


def raises(error, call):
    began = time.monotonic()
    try:
        call()
    except error as e:
        return time.monotonic() - began, e
    raise AssertionError("no %s" % error)


path = sys.argv[1]

# The GIL is free: another thread counts meanwhile.
ids = firn.open(path, wait=0.3)
count = 0
stop = False


def counting():
    global count
    while not stop:
        count += 1


t = threading.Thread(target=counting)
t.start()
took, e = raises(firn.Closed, ids.next)
stop = True
t.join()
assert 0.3 <= took < 5, took
assert count > 1000, count

# A signal, while there is no page that can be used, and while there is none at all.
signal.signal(signal.SIGUSR1, alarm)
for call in (firn.open(path, wait=None).next, lambda: firn.open(path + "-missing", wait=None)):
    t = after(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    took, e = raises(Alarm, call)
    assert took < 10, took
    t.join()

# Ctrl-C.
t = after(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
raises(KeyboardInterrupt, firn.open(path, wait=60).next)
t.join()

# close() of another thread, twice.
ids = firn.open(path, wait=60)
t = after(0.2, lambda: (ids.close(), ids.close()))
took, e = raises(ValueError, ids.next)
assert took < 10, took
t.join()
raises(ValueError, ids.next)
raises(ValueError, lambda: ids.batch(3))

# Values that no wait has.
for wait in (-1, float("nan")):
    raises(ValueError, lambda: firn.open(path, wait))
raises(TypeError, lambda: firn.open(path, "1"))
raises(ValueError, lambda: firn.open(path).batch(-1))
raises(TypeError, lambda: firn.open(path).batch("1"))
assert firn.open(path).batch(0) == []
print("ok")
