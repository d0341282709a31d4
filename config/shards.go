package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/topology"
	"github.com/firn-id/firn/store/open"
)

// NamedServer makes a server of what somebody wrote. The error shows no password.
func NamedServer(name, url string) (topology.Server, error) {
	if err := topology.CheckServerName(name); err != nil {
		return topology.Server{}, errors.New(phrase.WithoutPackage(err.Error()))
	}
	config, err := open.PostgreSQL(url)
	if err != nil {
		return topology.Server{}, errors.New(phrase.WithoutPackage(err.Error()))
	}
	return topology.Server{Name: name, Config: config}.Reusing(), nil
}

// A ShardServer is a server of firn.yaml.
type ShardServer struct{ name, url Entry }

// shards reads the section of that name.
func (r *reader) shards(n *yaml.Node) {
	r.mapping("shards", n, func(key Entry, value *yaml.Node) {
		if key.Text != "servers" {
			r.unknown(key, "shards", []string{"servers"})
			return
		}
		r.mapping("shards.servers", value, func(name Entry, value *yaml.Node) {
			what := "shards.servers." + name.Text
			if err := topology.CheckServerName(name.Text); err != nil {
				r.fault(name.At, "%s", phrase.WithoutPackage(err.Error()))
			}
			url := r.scalar(what, value)
			if url.At.Line == 0 {
				return
			}
			if err := open.CheckPostgreSQL(url.Text); err != nil {
				r.fault(url.At, "%s: %s", what, phrase.WithoutPackage(err.Error()))
			}
			r.Servers = append(r.Servers, ShardServer{name, url})
		})
	})
}

// ShardServers are the servers with shards of the file; none where there is no file.
func (c *Config) ShardServers() ([]topology.Server, error) {
	if c.File == nil {
		return nil, nil
	}
	servers := make([]topology.Server, len(c.File.Servers))
	for i, one := range c.File.Servers {
		var err error
		if servers[i], err = NamedServer(one.name.Text, one.url.Text); err != nil {
			return nil, &ValueError{fmt.Sprintf("%s:%d", c.File.Path, one.url.At.Line), err}
		}
	}
	return servers, nil
}
