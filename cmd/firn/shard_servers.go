package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard/topology"
	"github.com/firn-id/firn/store/open"
)

// This file knows the servers of firn shard: those of --server, or of firn.yaml.

// A serverFlag is the value of --server: NAME=URL, as often as there are servers. In
// a variable they stand one after the other with spaces between.
type serverFlag struct {
	servers []topology.Server
	said    []string // as they were given
}

const serverForm = "it is NAME=postgres://USER@HOST/DATABASE"

func (f *serverFlag) String() string { return "" }
func (f *serverFlag) Type() string   { return "NAME=URL" }

func (f *serverFlag) Set(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return errors.New(serverForm)
	}
	for _, word := range words {
		name, url, ok := strings.Cut(word, "=")
		if !ok && topology.CheckServerName(word) == nil {
			return fmt.Errorf("%q has no address: %s", word, serverForm)
		}
		if !ok || strings.Contains(name, ":") {
			return fmt.Errorf("%q has no name: %s", open.Redact(word), serverForm)
		}
		s, err := config.NamedServer(name, url)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(f.servers, func(other topology.Server) bool { return other.Name == name }) {
			return fmt.Errorf("%s is there twice", name)
		}
		f.servers, f.said = append(f.servers, s), append(f.said, word)
	}
	return nil
}

// addServers adds --server.
func addServers(cmd *cobra.Command) {
	cmd.Flags().Var(&serverFlag{}, "server", "a server with shards, as the owner of its schema firn reaches it; once for each (those of firn.yaml)")
}

// shardServers are the servers of the flag, or else of firn.yaml, in the order in
// which they stand there. There is at least one.
func shardServers(cmd *cobra.Command) ([]topology.Server, error) {
	if flag, ok := cmd.Flags().Lookup("server").Value.(*serverFlag); ok && len(flag.servers) > 0 {
		return flag.servers, nil
	}
	s, err := loadSettings(cmd)
	if err != nil {
		return nil, err
	}
	if s.File == nil || len(s.File.Servers) == 0 {
		return nil, ui.Bad("no server is named").
			Hint("--server a=postgres://USER@HOST/DATABASE, or in firn.yaml: shards: { servers: { a: postgres://... } }")
	}
	return s.ShardServers()
}
