// Package testserver starts the real servers that tests talk to: PostgreSQL,
// MariaDB, Redis, etcd, ZooKeeper and PgBouncer.
//
// Each is a process of its own on a free port of the loopback interface, with
// its data in a temporary directory; it runs under an account that may do little,
// is ended by its own process id, and leaves nothing behind. What the tests of a
// killed run left is removed by the next one. Servers are as durable as their
// makers ship them, so that what an adapter says of them is what a user will read.
//
// It also finds the programs of other languages that tests run as clients of our own
// server: Python, Node.js with the modules of a lock file, Java, redis-cli, Chromium.
//
// A server whose programs are missing is installed where that may be done (see
// [Install]). Otherwise the test is skipped, and "make test" counts it in its
// last lines; with FIRN_REQUIRE_SERVERS=1 it fails.
package testserver
