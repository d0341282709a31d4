"""Prints what a call raises: the class, the code and the text.

    refused.py PATH WAIT [BATCH]
"""

import sys

import firn

path, wait = sys.argv[1], float(sys.argv[2])
try:
    ids = firn.open(path, wait)
    if len(sys.argv) > 3:
        print(len(ids.batch(int(sys.argv[3]))))
    else:
        print(ids.next())
except firn.Error as e:
    assert str(e) == e.text and isinstance(e, firn.Error)
    print(type(e).__module__ + "." + type(e).__name__, e.code, e.text)
