package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processes lists what runs on this machine; where pids are given, those of them that do.
func processes(pids ...int) ([]running, error) {
	if pids == nil {
		paths, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	list := make([]running, 0, len(pids))
	for _, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended
		}
		// 42 (name, which may hold anything) S 1 ...: the start is the 22nd field.
		_, rest, ok := strings.Cut(string(b), " (")
		end := strings.LastIndexByte(rest, ')')
		if !ok || end < 0 {
			continue
		}
		f := strings.Fields(rest[end+1:])
		if len(f) < 20 || f[0] == "Z" {
			continue
		}
		parent, _ := strconv.Atoi(f[1])
		list = append(list, running{identity{pid, f[19]}, parent, f[0] == "T"})
	}
	return list, nil
}

// killProgramsIn ends what runs a program of a directory.
func killProgramsIn(dir string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if program, err := os.Readlink(link); err == nil && strings.HasPrefix(program, dir+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
