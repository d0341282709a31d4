//go:build linux

package siege

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/torture/ledger"
)

// parse reads what a command printed: whole lines of one id each.
func parse(r io.Reader) (runs []ledger.Run, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return runs, nil
		}
		id, bad := firn.ParseID(string(bytes.TrimSuffix(line, []byte("\n"))))
		if err != nil || bad != nil {
			return runs, fmt.Errorf("after %d ids there is %q", n, line)
		}
		if k := len(runs); k > 0 && runs[k-1].Last()+1 == id {
			runs[k-1].Count++
		} else {
			runs = append(runs, ledger.Run{First: id, Count: 1})
		}
	}
}

// command runs the command beside all else. It may fail, but not fall over.
func (s *siege) command(args ...string) {
	cmd := exec.Command(program(s.tb, "firn"), append(args, "--store", s.store.url)...)
	cmd.SysProcAttr = ownGroup()
	s.background.Go(func() {
		out, _ := cmd.Output()
		if code := cmd.ProcessState.ExitCode(); code < 0 || code > 2 { // 2: the worker was never held
			s.out.problem("%s: exit code %d", cmd, code)
		}
		if args[0] != "next" {
			return
		}
		runs, err := parse(bytes.NewReader(out))
		if err != nil {
			s.out.problem("%s: %v", cmd, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.commands = append(s.commands, Issuer{Name: fmt.Sprintf("command %d", len(s.commands)), Hands: [][]ledger.Run{runs}})
	})
}
