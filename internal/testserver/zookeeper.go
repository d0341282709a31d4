package testserver

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ZooKeeper starts a single ZooKeeper server. The lines are added to its
// configuration; of two for one key, the later holds.
func ZooKeeper(tb testing.TB, lines ...string) *Server {
	tb.Helper()
	return launch(tb, zookeeperKind, plan{
		ports:   1,
		prepare: func(s *Server) error { return writeZooConfig(s, "", lines) },
		command: zookeeperCommand,
		url:     func(addr string) string { return "zk://" + addr },
		ready:   func(addr string) error { _, err := zookeeperMode(addr); return err },
	})
}

// writeZooConfig writes zoo.cfg and, for a member of an ensemble, myid.
func writeZooConfig(s *Server, myid string, lines []string) error {
	data := filepath.Join(s.home, "data")
	err := errors.Join(os.MkdirAll(data, 0o700), give(data, s.account))
	if err != nil {
		return err
	}
	lines = append([]string{
		"tickTime=200", // of milliseconds; a session lasts at least two
		"maxSessionTimeout=60000",
		"dataDir=" + data,
		"clientPortAddress=127.0.0.1",
		fmt.Sprintf("clientPort=%d", s.ports[0]),
		"admin.enableServer=false", // on a fixed port
		"4lw.commands.whitelist=srvr,ruok,mntr",
	}, lines...)
	files := map[string]string{filepath.Join(s.home, "zoo.cfg"): strings.Join(lines, "\n") + "\n"}
	if myid != "" {
		files[filepath.Join(data, "myid")] = myid
	}
	for path, text := range files {
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), give(path, s.account)); err != nil {
			return err
		}
	}
	return nil
}

func zookeeperCommand(s *Server) []string {
	return []string{
		program("java"), "-cp", program(zkJar), "-Xms32m", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-XX:-UsePerfData", "-Xshare:auto", "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.log.dir=" + s.home,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(s.home, "zoo.cfg"),
	}
}

// zookeeperMode asks what a server is: standalone, leader or follower. It says so
// only when it serves, while "ruok" has an answer before that.
func zookeeperMode(addr string) (string, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := c.Write([]byte("srvr")); err != nil {
		return "", err
	}
	b, err := io.ReadAll(c)
	if err != nil {
		return "", err
	}
	_, mode, ok := strings.Cut(string(b), "\nMode: ")
	if !ok {
		return "", fmt.Errorf("testserver: zookeeper does not serve yet: %q", b)
	}
	mode, _, _ = strings.Cut(mode, "\n")
	return mode, nil
}
