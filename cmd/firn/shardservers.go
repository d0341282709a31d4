package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/store/open"
)

// This file knows the servers of firn shards: those of --server, or of firn.yaml.

// A serverFlag is the value of --server: NAME=URL, as often as there are servers. In
// a variable they stand one after the other with spaces between.
type serverFlag struct {
	servers []shard.Server
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
		if !ok && shard.CheckServerName(word) == nil {
			return fmt.Errorf("%q has no address: %s", word, serverForm)
		}
		if !ok || strings.Contains(name, ":") {
			return fmt.Errorf("%q has no name: %s", open.Redact(word), serverForm)
		}
		s, err := namedServer(name, url)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(f.servers, func(other shard.Server) bool { return other.Name == name }) {
			return fmt.Errorf("%s is there twice", name)
		}
		f.servers, f.said = append(f.servers, s), append(f.said, word)
	}
	return nil
}

// namedServer makes a server of what somebody wrote. The error shows no password.
func namedServer(name, url string) (shard.Server, error) {
	if err := shard.CheckServerName(name); err != nil {
		return shard.Server{}, errors.New(ui.WithoutPackage(err.Error()))
	}
	config, err := open.PostgreSQL(url)
	if err != nil {
		return shard.Server{}, errors.New(ui.WithoutPackage(err.Error()))
	}
	return shard.Server{Name: name, Config: config}, nil
}

// addServers adds --server.
func addServers(cmd *cobra.Command) {
	cmd.Flags().Var(&serverFlag{}, "server", "a server with shards, as the owner of its schema firn reaches it; once for each (those of firn.yaml)")
}

// shardServers are the servers of the flag, or else of firn.yaml, in the order in
// which they stand there. There is at least one.
func shardServers(cmd *cobra.Command) ([]shard.Server, error) {
	if flag, ok := cmd.Flags().Lookup("server").Value.(*serverFlag); ok && len(flag.servers) > 0 {
		return flag.servers, nil
	}
	s, err := loadSettings(cmd)
	if err != nil {
		return nil, err
	}
	if s.file == nil || len(s.file.servers) == 0 {
		return nil, ui.Bad("no server is named").
			Hint("--server a=postgres://USER@HOST/DATABASE, or in firn.yaml: shards: { servers: { a: postgres://... } }")
	}
	return s.shardServers()
}

// A serverConfig is a server of firn.yaml.
type serverConfig struct{ name, url entry }

// shards reads the section of that name.
func (r *configReader) shards(n *yaml.Node) {
	r.mapping("shards", n, func(key entry, value *yaml.Node) {
		if key.text != "servers" {
			r.unknown(key, "shards", []string{"servers"})
			return
		}
		r.mapping("shards.servers", value, func(name entry, value *yaml.Node) {
			what := "shards.servers." + name.text
			if err := shard.CheckServerName(name.text); err != nil {
				r.fault(name.at, "%s", ui.WithoutPackage(err.Error()))
			}
			url := r.scalar(what, value)
			if url.at.line == 0 {
				return
			}
			if err := open.CheckPostgreSQL(url.text); err != nil {
				r.fault(url.at, "%s: %s", what, ui.WithoutPackage(err.Error()))
			}
			r.servers = append(r.servers, serverConfig{name, url})
		})
	})
}
