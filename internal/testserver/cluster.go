package testserver

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A Cluster is several servers that are one store.
type Cluster struct {
	Members []*Server
	scheme  string
	leads   func(addr string) bool
}

// URL returns the address of all members, as store/open reads it.
func (c *Cluster) URL() string {
	addrs := make([]string, len(c.Members))
	for i, m := range c.Members {
		addrs[i] = m.addr
	}
	return c.scheme + "://" + strings.Join(addrs, ",")
}

// Leader returns the member that leads, waiting until one does.
func (c *Cluster) Leader(tb testing.TB) *Server {
	tb.Helper()
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for _, m := range c.Members {
			if !m.process.exited() && c.leads(m.addr) {
				return m
			}
		}
	}
	tb.Fatal("testserver: the cluster finds no leader")
	return nil
}

// EtcdCluster starts n members of one etcd cluster.
func EtcdCluster(tb testing.TB, n int) *Cluster {
	tb.Helper()
	c := &Cluster{scheme: "etcd", leads: etcdLeads}
	return c.launch(tb, n, etcdKind, func(i int) plan {
		return plan{
			ports: 2,
			command: func(s *Server) []string {
				peers := make([]string, n)
				for j, m := range c.Members {
					peers[j] = fmt.Sprintf("m%d=http://127.0.0.1:%d", j, m.ports[1])
				}
				return etcdCommand(s, fmt.Sprint("m", i), strings.Join(peers, ","), 50, 500)
			},
			url:   func(addr string) string { return "etcd://" + addr },
			ready: etcdReady,
		}
	})
}

// ZooKeeperCluster starts an ensemble of n ZooKeeper servers.
func ZooKeeperCluster(tb testing.TB, n int) *Cluster {
	tb.Helper()
	c := &Cluster{scheme: "zk", leads: func(addr string) bool {
		mode, err := zookeeperMode(addr)
		return err == nil && mode == "leader"
	}}
	return c.launch(tb, n, zookeeperKind, func(i int) plan {
		return plan{
			ports: 3,
			prepare: func(s *Server) error {
				lines := []string{"initLimit=50", "syncLimit=25"} // ticks
				for j, m := range c.Members {
					lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", j+1, m.ports[1], m.ports[2]))
				}
				return writeZooConfig(s, strconv.Itoa(i+1), lines)
			},
			command: zookeeperCommand,
			url:     func(addr string) string { return "zk://" + addr },
			ready:   func(addr string) error { _, err := zookeeperMode(addr); return err },
		}
	})
}

func (c *Cluster) launch(tb testing.TB, n int, k *kind, plans func(i int) plan) *Cluster {
	tb.Helper()
	for i := range n {
		c.Members = append(c.Members, create(tb, k, plans(i)))
	}
	for try := 1; ; try++ {
		err := c.first()
		if err == nil {
			return c
		}
		if !errors.Is(err, errTaken) || try == 5 {
			tb.Fatal(err)
		}
		for _, m := range c.Members {
			if m.process != nil {
				m.process.kill()
			}
		}
	}
}

// first chooses all ports before it starts a member: each must know the others'.
func (c *Cluster) first() error {
	for _, m := range c.Members {
		if err := m.choosePorts(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		if err := m.clear(); err != nil {
			return err
		}
	}
	return c.start()
}

// start starts the members that do not run, all before it waits for one: none
// serves without a majority.
func (c *Cluster) start() error {
	var started []*Server
	for _, m := range c.Members {
		if m.process == nil || m.process.exited() {
			if err := m.spawn(); err != nil {
				return err
			}
			started = append(started, m)
		}
	}
	deadline := time.Now().Add(startTime)
	for _, m := range started {
		if err := m.waitReady(deadline); err != nil {
			if taken.MatchString(m.Log()) {
				err = fmt.Errorf("%w: %s", errTaken, m.addr)
			}
			return err
		}
	}
	return nil
}

// Start starts the members that do not run.
func (c *Cluster) Start(tb testing.TB) {
	tb.Helper()
	if err := c.start(); err != nil {
		tb.Fatal(err)
	}
}
