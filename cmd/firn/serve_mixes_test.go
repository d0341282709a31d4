//go:build !windows

package main

import (
	"strings"
	"testing"
)

// A reload does not take a series to a pool whose ids may equal those of the pool that it has:
// another server may give ids of that one in the same series.
func TestServeMixesNoPoolsThatMayRepeat(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + dir + "/ids.db"
	config := func(pool string) {
		write(t, dir, "firn.yaml", "store: "+url+"\npools: { default: {}, mail: {} }\nseries:\n  letter: { kind: flake, pool: default }\n  photo: { kind: flake, pool: "+pool+" }\n")
	}
	succeed(t, "pool", "create", "default", "--new", "--store", url)
	succeed(t, "pool", "create", "mail", "--may-repeat", "default", "--new", "--store", url)
	config("default")
	s := serve(t, dir)
	s.reload(reloaded)

	config("mail")
	s.reload(notReloaded)
	for _, want := range []string{`pool mail may repeat ids of pool default, from which series photo has had its ids`, "firn pool set default --workers 0-511", "firn pool set mail --workers 512-1023"} {
		if !strings.Contains(s.log.String(), want) {
			t.Errorf("no %q in\n%s", want, s.log)
		}
	}

	// Nor by two reloads.
	write(t, dir, "firn.yaml", "store: "+url+"\npools: { default: {}, mail: {} }\nseries:\n  letter: { kind: flake, pool: default }\n")
	s.reload(reloaded)
	config("mail")
	s.reload(notReloaded)

	succeed(t, "pool", "set", "default", "--workers", "0-511", "--store", url)
	s.reload(notReloaded) // mail still has all workers
	succeed(t, "pool", "set", "mail", "--workers", "512-1023", "--store", url)
	s.reload(reloaded)
}
