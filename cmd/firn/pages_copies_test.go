//go:build !windows

package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/testserver"
)

// copies are the hosts that a page makes of other servers.
func (p *page) copies() map[string]bool {
	hosts := map[string]bool{}
	for _, st := range p.steps {
		if words := strings.Fields(st.at); st.does == doServer && len(words) > 1 {
			if u, err := url.Parse(words[1]); err == nil {
				hosts[u.Host] = true
			}
		}
	}
	return hosts
}

// change does what a page says of a server: stop and start it, or make another one of it: copy starts the files of its
// base backup as they are, and promote a standby, which then is promoted. A new server lives as long as the page, and
// the others as long as whose test is all.
func (a *addresses) change(all, t *testing.T, st step) error {
	words := strings.Fields(st.at)
	server := a.servers[words[0]]
	if server == nil {
		return fmt.Errorf("no command or SQL of the page uses %s", words[0])
	}
	switch st.text {
	case "stop":
		server.Kill(all)
	case "start":
		server.Start(all)
	case "copy":
		return a.arrives(words[1], testserver.PostgresCopy(t, server, append(slices.Clone(pageSettings), words[2:]...)...))
	case "promote":
		standby := testserver.PostgresStandby(t, server, append(slices.Clone(pageSettings), words[2:]...)...)
		standby.Promote(t)
		return a.arrives(words[1], standby.Server)
	}
	return nil
}

// arrives has the page's URLs of a host lead to a server.
func (a *addresses) arrives(name string, server *testserver.Server) error {
	to, err := url.Parse(name)
	if err != nil {
		return err
	}
	var all []string
	for _, u := range a.copies {
		if u.Host == to.Host {
			a.leads(u, server)
			all = append(all, u.String())
		}
	}
	slices.SortFunc(all, longestFirst)
	for _, one := range all {
		a.in = append(a.in, literally(one, a.url[one]))
	}
	a.host(to.Scheme, to.Host, server.Addr())
	return nil
}
