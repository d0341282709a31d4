package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/bench/figures"
)

// A stage has the servers that are compared.
type stage struct {
	servers     []*process
	dirs        []string
	interrupted chan os.Signal
	before      string // another checkout, whose servers take part; or empty
}

// pastName ends the names of servers of the other checkout.
const pastName = ", before"

// A process is a server.
type process struct {
	*exec.Cmd
	addr string
}

// Where servers run, and clients: apart, if there is room.
var (
	serverCPU = "0"
	clientCPU = strconv.Itoa(min(1, runtime.NumCPU()-1))
)

// client returns a command that runs where clients do.
func client(name string, args ...string) *exec.Cmd {
	return exec.Command("taskset", append([]string{"-c", clientCPU, name}, args...)...)
}

// role starts this program as one of its roles.
func (s *stage) role(name string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return s.roleOf(self, name)
}

// pastRole starts this program, as the other checkout builds it, as one of its roles.
func (s *stage) pastRole(name string) (*process, error) {
	program, err := s.build(filepath.Join(s.before, "bench"), "./server")
	if err != nil {
		return nil, err
	}
	return s.roleOf(program, name)
}

// build builds a program of a checkout, in a directory of its module.
func (s *stage) build(module, pkg string) (string, error) {
	dir, err := s.directory()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, filepath.Base(pkg))
	build := exec.Command("go", "build", "-trimpath", "-o", program, pkg)
	build.Dir = module
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("%s of %s cannot be built: %w", pkg, module, err)
	}
	return program, nil
}

func (s *stage) roleOf(program, name string) (*process, error) {
	cmd := exec.Command("taskset", "-c", serverCPU, program, "-role", name)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // it ends when this process does
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p, err := s.start(cmd)
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("%s says no address: %w", name, err)
	}
	p.addr = strings.TrimSpace(line)
	return p, nil
}

// server starts a program that listens on an address, which is free.
func (s *stage) server(addr, name string, args ...string) (*process, error) {
	p, err := s.start(exec.Command("taskset", append([]string{"-c", serverCPU, name}, args...)...))
	if err != nil {
		return nil, err
	}
	p.addr = addr
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return p, c.Close()
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%s does not listen: %w", name, err)
		}
	}
}

func (s *stage) start(cmd *exec.Cmd) (*process, error) {
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{Cmd: cmd}
	s.servers = append(s.servers, p)
	return p, nil
}

// directory makes one that is gone with the stage.
func (s *stage) directory() (string, error) {
	dir, err := os.MkdirTemp("", "firn-bench-")
	if err == nil {
		s.dirs = append(s.dirs, dir)
	}
	return dir, err
}

// clear ends the servers.
func (s *stage) clear() {
	defer func() {
		for _, dir := range s.dirs {
			os.RemoveAll(dir)
		}
	}()
	for _, p := range s.servers {
		p.Process.Kill()
		p.Wait()
	}
}

// freeAddr returns an address of the loopback interface that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// say tells whoever has started this role where it listens.
func say(l net.Listener) { fmt.Println(l.Addr()) }

// abandoned returns a context that is done when the program that has started this role
// is gone.
func abandoned() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		os.Stdin.Read(make([]byte, 1)) // nothing is ever written
		cancel()
	}()
	return ctx
}

// cpu returns the processor time that all threads of a process have had.
func (p *process) cpu() (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.Process.Pid))
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(err, errors.New("a server has ended"))
	}
	var sum time.Duration
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // a thread that has ended
		}
		first, _, _ := strings.Cut(string(b), " ")
		n, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += time.Duration(n)
	}
	return sum, nil
}

// measure runs something that makes n requests of the server.
func (p *process) measure(n int, run func() error) (figures.Sample, error) {
	before, err := p.cpu()
	if err != nil {
		return figures.Sample{}, err
	}
	start := time.Now()
	if err := run(); err != nil {
		return figures.Sample{}, err
	}
	elapsed := time.Since(start)
	after, err := p.cpu()
	return figures.Sample{CPU: float64(after-before) / float64(n), Elapsed: float64(elapsed) / float64(n)}, err
}
