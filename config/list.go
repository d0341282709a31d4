package config

import (
	"github.com/firn-id/firn/store/open"
)

// A Line is a setting as --json prints it.
type Line struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Lines are all settings in force. Store is the URL of the default store, or the reason why there is no default store.
func (c *Config) Lines(store string) ([]Line, error) {
	var all []Line
	add := func(key string, v Value) { all = append(all, Line{key, v.Text, v.From}) }
	switch said, ok := c.Said("config"); {
	case c.File == nil:
		add("config", Value{"none", Default})
	case ok:
		add("config", Value{c.File.Path, said.From})
	default:
		add("config", Value{c.File.Path, "found"})
	}
	url := c.StoreURL()
	if url.Text == "" {
		url.Text = store
	}
	url.Text = open.Redact(url.Text)
	add("store", url)

	names, err := c.PoolsInForce()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var p *Pool
		if c.File != nil {
			p = c.File.Pool(name)
		}
		for _, k := range LeaseKeys {
			add("pools."+name+"."+k.Name, c.Knob(k, p))
		}
	}
	if c.File == nil {
		return append(all, c.serveInForce()...), nil
	}
	for i := range c.File.Series {
		all = append(all, c.seriesInForce(&c.File.Series[i], names[0])...)
	}
	for _, one := range c.File.Servers {
		add("shards.servers."+one.name.Text, c.Value("", Entry{open.Redact(one.url.Text), one.url.At}, ""))
	}
	return append(all, c.serveInForce()...), nil
}

// seriesInForce are the settings of a series; pool is the one of a flake that names
// none, where there is none in the file.
func (c *Config) seriesInForce(one *Written, pool string) []Line {
	var all []Line
	add := func(key string, v Value) {
		all = append(all, Line{"series." + one.Name.Text + "." + key, v.Text, v.From})
	}
	kind := one.Kind.Text
	add("kind", c.Value("", one.Kind, ""))
	if kind == Flake {
		if p, err := c.File.PoolOf(one); err == nil && p != nil {
			pool = p.name.Text
		}
		add("pool", c.Value("", one.pool, pool))
		add("shard", c.Value("", one.shard, "0"))
	}
	for _, url := range one.stores {
		add("stores", c.Value("", Entry{open.Redact(url.Text), url.At}, ""))
	}
	for _, k := range CounterKeys {
		if k.Of(kind) && (k.Name != "names" || isTemplate(one.Name.Text)) {
			add(k.Name, c.Value(k.flagName(), one.keys[k.Name], standardOf(&k, kind)))
		}
	}
	if one.Public != nil {
		add("public", c.Value("", Entry{one.Public.String(), one.publicAt}, ""))
		add("answers", c.Value("", one.Answers, "id"))
	}
	return all
}

// PoolsInForce are the names of the pools there are to lease from: that of
// --pool, those of the file, or [pool.Default].
func (c *Config) PoolsInForce() ([]string, error) {
	if _, ok := c.Said("pool"); ok || c.File == nil || len(c.File.Pools) == 0 {
		name, _, err := c.Pool("")
		return []string{name}, err
	}
	return c.File.poolNames(), nil
}

// serveInForce are the settings of the server as config show shows them. Nobody
// gets from a hash to a token, and it is no matter of who looks at settings.
func (c *Config) serveInForce() []Line {
	var all []Line
	for i := range ServerKeys {
		v := c.serveValue(&ServerKeys[i])
		all = append(all, Line{ServerKeys[i].whole(), v.Text, v.From})
	}
	if c.File == nil {
		return all
	}
	for _, t := range c.File.serve.tokens {
		v := c.Value("", Entry{HashPrefix + "xxxxx", t.hash.At}, "")
		all = append(all, Line{"tokens." + t.name.Text + ".hash", v.Text, v.From})
		for _, r := range t.rights {
			v := c.Value("", Entry{r.right.String(), r.series.At}, "")
			all = append(all, Line{"tokens." + t.name.Text + ".rights." + r.series.Text, v.Text, v.From})
		}
	}
	return all
}
