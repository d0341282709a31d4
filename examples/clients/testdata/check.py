"""What a program does with redis-py, for the tests: each id it gets is a line."""

import sys

import redis

url = sys.argv[1]
r = redis.Redis.from_url(url, decode_responses=True)
assert r.ping() is True
r.client_setname("check")
assert r.client_getname() == "check"


def photo(*ids):
    for i in ids:
        print("photo", i)


photo(r.incr("photo"))
with r.pipeline(transaction=False) as p:
    for _ in range(200):
        p.incr("photo")
    photo(*p.execute())
photo(r.execute_command("FIRN.NEXT", "photo"))
photo(*r.execute_command("FIRN.NEXT", "photo", 50))
print("orders", r.incrby("orders", 10))
print("orders", *r.execute_command("FIRN.RANGE", "orders", 5))
try:
    r.incr("photos")
    sys.exit("a series that is not there gives ids")
except redis.ResponseError as err:
    print("error", err)
