package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/bench/figures"
	"github.com/firn-id/firn/page"
	"golang.org/x/sys/unix"
)

// A client is a row of the table.
type client struct {
	name string
	// build makes the program in an empty directory, and returns its command without the path of the page. here is the
	// directory of this package.
	build func(here, dir string) ([]string, error)
}

// clients, the first of which the others are compared with.
var clients = []client{
	{"Go, Lease.Next", self("lease")},
	{"Go, package page", self("page")},
	{"C, firn.h", inC},
	{"Java, id.firn", inJava},
	{"Node, firn-page", inNode},
	{"Python, firn", inPython},
	{"PHP, Firn\\Page", inPHP},
}

type row struct {
	client
	process   *process
	missing   error
	one, many []figures.Sample
}

// A process is a client that runs.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(ctx context.Context, c client, dir, path string) (*process, error) {
	_, file, _, _ := runtime.Caller(0)
	here := filepath.Dir(file)
	if !filepath.IsAbs(here) { // built with -trimpath
		wd, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		if here = filepath.Join(wd, "page"); filepath.Base(wd) == "page" {
			here = wd
		}
	}
	mine, err := os.MkdirTemp(dir, "client-")
	if err != nil {
		return nil, err
	}
	args, err := c.build(here, mine)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, args[0], append(args[1:], path)...)}
	p.cmd.Dir, p.cmd.Stderr = mine, os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

// take has the client take ids, and returns what one took.
func (p *process) take(n, batch int) (figures.Sample, error) {
	before, err := p.cpu()
	if err != nil {
		return figures.Sample{}, err
	}
	if _, err := fmt.Fprintln(p.in, n, batch); err != nil {
		return figures.Sample{}, err
	}
	if _, err := p.out.ReadString('\n'); err != nil {
		return figures.Sample{}, err
	}
	after, err := p.cpu()
	return figures.Sample{CPU: float64(after-before) / float64(n)}, err
}

// cpu is the processor time that the process has had: its clock, as clock_getcpuclockid says.
func (p *process) cpu() (int64, error) {
	var t unix.Timespec
	err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|2), &t)
	return t.Nano(), err
}

func (p *process) end() {
	p.in.Close()
	_ = p.cmd.Wait()
}

func tool(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w %s", name, err, out)
	}
	return nil
}

func self(role string) func(string, string) ([]string, error) {
	return func(string, string) ([]string, error) {
		program, err := os.Executable()
		return []string{program, "-role", role}, err
	}
}

func inC(here, dir string) ([]string, error) {
	program := dir + "/bench"
	return []string{program}, tool("gcc", "-O2", "-pthread", "-I", here+"/../../clients/c", "-o", program, here+"/programs/bench.c")
}

func inJava(here, dir string) ([]string, error) {
	sources, err := filepath.Glob(here + "/../../clients/java/src/main/java/id/firn/*.java")
	if err != nil {
		return nil, err
	}
	// A small young generation: Java touches all of it once in the first round, and not in those that are measured.
	return []string{"java", "-XX:+UseSerialGC", "-Xmn8m", "-cp", dir, "Bench"}, tool("javac", append([]string{"-d", dir, here + "/programs/Bench.java"}, sources...)...)
}

func inNode(here, dir string) ([]string, error) {
	module := dir + "/node_modules/firn-page"
	err := os.CopyFS(module, os.DirFS(here+"/../../clients/node"))
	for from, to := range map[string]string{"/../../clients/c/firn.h": module + "/firn.h", "/programs/bench.js": dir + "/bench.js"} {
		b, e := os.ReadFile(here + from)
		err = errors.Join(err, e, os.WriteFile(to, b, 0o600))
	}
	return []string{"node", "bench.js"}, errors.Join(err, tool("node", module+"/install.js"))
}

// be is a client in Go.
func be(role, path string) error {
	ctx := context.Background()
	var source interface {
		firn.Source
		Append(context.Context, []firn.ID, int) ([]firn.ID, error)
	}
	if role == "lease" {
		l, err := open(ctx)
		if err != nil {
			return err
		}
		defer l.Close()
		source = l
	} else {
		p, err := page.Open(path, nil)
		if err != nil {
			return err
		}
		defer p.Close()
		source = p
	}
	var ids []firn.ID
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var n, batch int
		if _, err := fmt.Fscan(strings.NewReader(lines.Text()), &n, &batch); err != nil {
			return err
		}
		for i := 0; i < n; i += batch {
			var err error
			if batch == 1 {
				_, err = source.Next(ctx)
			} else {
				ids, err = source.Append(ctx, ids[:0], batch)
			}
			if err != nil {
				return err
			}
		}
		fmt.Println()
	}
	return nil
}
