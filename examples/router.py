"""Routes by key and by id with the map of `firn shard ls --map --json`, and follows a move; behind PgBouncer too.

    router.py map.json alice a=postgres://app@db1/app b=postgres://app@db2/app
"""
import bisect, hashlib, json, sys, time
import psycopg  # version 3


class Cluster:
    def __init__(self, map_file, servers):  # their addresses, by name
        self.map, self.addresses, self.connections = json.load(open(map_file)), servers, {}
        if self.map["v"] != 1:
            raise ValueError("a map of a version that this router does not know")
        self.server = {s["shard"]: s.get("server") for s in self.map["shards"]}

    def for_id(self, id):
        return id >> self.map["shard"]["shift"] & (1 << self.map["shard"]["bits"]) - 1

    def for_key(self, key):
        keys = self.map["keys"]
        if keys["scheme"] == "hash":
            return int(hashlib.sha256(key.encode()).hexdigest()[:13], 16) % keys["shards"]
        if not key.isdecimal() or str(int(key)) != key or int(key) >= 1 << 63:
            raise ValueError(f"key {key!r} is not a number from 0 to 9223372036854775807")
        if keys["scheme"] == "mod":
            return int(key) % keys["shards"]
        shard = bisect.bisect([int(b) for b in keys.get("bounds", [])], int(key)) - 1
        if shard < 0:
            raise ValueError(f"key {key!r} has no shard")
        return shard

    def connection(self, server):
        if server not in self.connections or self.connections[server].closed:
            self.connections[server] = psycopg.connect(self.addresses[server], autocommit=True, prepare_threshold=None)
        return self.connections[server]

    def in_tx(self, shard, f, wait=5):
        """Runs f(connection) in a transaction on the shard: again where it went, if it moved; waits that many seconds for it."""
        deadline = time.monotonic() + wait
        while True:
            entered = False
            try:
                connection = self.connection(self.server[shard])
                with connection.transaction():
                    connection.execute("SELECT firn.enter(%s, %s)", (shard, self.map["cluster"]))
                    entered = True
                    result = f(connection)
                    if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                        raise RuntimeError("f went on after an error: nothing was committed")
                return result
            except psycopg.Error as e:  # of a shard that is not here, nothing was committed; nor where the server is away
                away = not entered and isinstance(e, psycopg.OperationalError)
                if not away and e.sqlstate not in ("ID001", "ID002") or time.monotonic() > deadline:
                    raise
                if e.sqlstate == "ID002":
                    self.server[shard] = e.diag.message_detail
                time.sleep(0.01)


if __name__ == "__main__":
    cluster = Cluster(sys.argv[1], dict(s.split("=", 1) for s in sys.argv[3:]))
    where = lambda c: "{0} on {1}".format(*c.execute("SELECT current_schema(), current_database()").fetchone())
    print(cluster.in_tx(cluster.for_key(sys.argv[2]), where))
