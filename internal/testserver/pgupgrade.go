package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// PostgresUpgraded stops a server and starts another one, which pg_upgrade makes of its data. The version of the new one is
// the second one that FIRN_TEST_POSTGRES names, or that of this machine, which pg_upgrade takes for a newer one too. It has
// the settings as those of Postgres, also while pg_upgrade runs.
func PostgresUpgraded(tb testing.TB, from *Server, settings ...string) *Server {
	tb.Helper()
	_, major := asked()
	old, p := from.plan.programs, postgresOf(tb, major)
	oldBin, bin := filepath.Dir(program(old.bin+"postgres")), filepath.Dir(program(p.bin+"postgres"))
	for _, needed := range []string{oldBin + "/pg_controldata", bin + "/pg_upgrade"} { // servers of npm lack them
		if _, err := os.Stat(needed); err != nil {
			tb.Skip("testserver: this build of PostgreSQL lacks " + filepath.Base(needed))
		}
	}
	from.Stop(tb)
	prepare := func(s *Server) error {
		initdb := p.argv("initdb", "-D", filepath.Join(s.home, "data"), "-U", "t", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
		if p.major == "18" && old.major != "18" { // has checksums where nobody says otherwise
			initdb = append(initdb, "--no-data-checksums")
		}
		if err := s.run(initdb...); err != nil {
			return err
		}
		upgrade := p.argv("pg_upgrade", "-U", "t", "-N", "-s", s.home, "-d", filepath.Join(from.home, "data"), "-D", filepath.Join(s.home, "data"),
			"-b", oldBin, "-B", bin)
		for _, set := range settings {
			upgrade = append(upgrade, "-o", "-c "+set, "-O", "-c "+set)
		}
		if err := s.runFor(5*startTime, upgrade...); err != nil { // it starts each server several times
			return fmt.Errorf("%w\n%s", err, upgradeLog(filepath.Join(s.home, "data")))
		}
		return nil
	}
	return launch(tb, postgresKind, plan{
		ports:    1,
		prepare:  prepare,
		command:  func(s *Server) []string { return p.command(s, settings) },
		url:      postgresURL,
		ready:    postgresReady,
		starting: postgresStarting,
		programs: p,
	})
}

// upgradeLog is the end of what pg_upgrade has logged of the database that it failed at.
func upgradeLog(data string) (text []byte) {
	logs, _ := filepath.Glob(filepath.Join(data, "pg_upgrade_output.d", "*", "log", "pg_upgrade_dump_*.log"))
	for _, path := range logs {
		if b, err := os.ReadFile(path); err == nil {
			text = append(text, b[max(0, len(b)-1500):]...)
		}
	}
	return text
}
