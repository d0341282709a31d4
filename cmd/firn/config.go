package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store/open"
)

func newConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check firn.yaml, or show what is in force",
		Example: "  firn config check",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newConfigCheck(), newConfigPrint())
	return cmd
}

func newConfigCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report everything that is wrong with a config",
		Long: `Report everything that is wrong with a config, a line for each fault with its line
and column. Without FILE that is the one that would be used: --config, FIRN_CONFIG,
./firn.yaml, $XDG_CONFIG_HOME/firn/firn.yaml (~/.config), /etc/firn/firn.yaml, the
first that is there. The key files of public forms are read; nothing else is opened that
the file names.

The exit code is 3 if there is a fault.`,
		Example: `  firn config check
  firn config check /etc/firn/firn.yaml --json`,
		Args: arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var place configPlace
			if len(args) > 0 {
				place.path = args[0]
			} else {
				var err error
				if place, err = findConfig(cmd); err != nil {
					return err
				}
			}
			if place.path == "" {
				return ui.Failed("there is no config to check").Hint("firn config check FILE")
			}
			return checkConfig(place, cmd.OutOrStdout(), wantsJSON(cmd))
		},
	}
}

// A faultLine is a fault as --json prints it.
type faultLine struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Fault  string `json:"fault"`
}

func checkConfig(place configPlace, out io.Writer, asJSON bool) error {
	c, err := place.read()
	path := place.path
	if err == nil {
		err = c.checkKeys(path)
	}
	var wrong *configError
	switch {
	case errors.As(err, &wrong) && asJSON:
		enc := json.NewEncoder(out)
		for _, f := range wrong.faults {
			if err := enc.Encode(faultLine{path, f.at.line, f.at.column, f.text}); err != nil {
				return err
			}
		}
	case errors.As(err, &wrong):
		if _, err := fmt.Fprintln(out, wrong); err != nil {
			return err
		}
	case err != nil || asJSON:
		return err
	default:
		_, err = fmt.Fprintf(out, "%s: ok: %s, %d series\n", path, phrase.Plural(len(c.pools), "pool"), len(c.series))
		return err
	}
	return &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%s: %s", path, phrase.Plural(len(wrong.faults), "fault"))}
}

// checkKeys reads the key files of public forms. Keys that a flag or a variable names are
// left out: the process that serves may have another variable than this one.
func (c *config) checkKeys(path string) error {
	wrong := &configError{path: path}
	for i := range c.series {
		one := &c.series[i]
		if one.public == nil {
			continue
		}
		if f := c.keysMissing(one); f != nil {
			wrong.faults = append(wrong.faults, fault{one.publicAt, oneLine(f)})
			continue
		}
		if keys := one.public.values["keys"]; keys == "" || strings.HasPrefix(keys, keysFromVariable) {
			continue
		}
		if _, err := one.public.open(io.Discard); err != nil {
			wrong.faults = append(wrong.faults, fault{one.publicAt, fmt.Sprintf("series %s: public: %s", one.name.text, oneLine(err))})
		}
	}
	if len(wrong.faults) == 0 {
		return nil
	}
	return wrong
}

func newConfigPrint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Show every setting in force and where it is from",
		Long: `Show every setting in force and where it is from: a flag, a FIRN_ variable, a line
of firn.yaml, or the default, in this order. Flags are those of the commands that
lease and of firn next, so that it can be tried what they would do. Passwords in URLs
are hidden.`,
		Example: `  firn config print
  firn config print --outage 10m --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			all, err := s.all(cmd)
			if err != nil {
				return err
			}
			return printSettings(cmd.OutOrStdout(), all, wantsJSON(cmd))
		},
	}
	addStore(cmd)
	addPool(cmd)
	addSeries(cmd, kindSegment, kindSerial)
	addListen(cmd)
	return cmd
}

// A settingLine is a setting as --json prints it.
type settingLine struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// all are all settings in force.
func (s *settings) all(cmd *cobra.Command) ([]settingLine, error) {
	var all []settingLine
	add := func(key string, v value) { all = append(all, settingLine{key, v.text, v.from}) }
	switch f := cmd.Flags().Lookup("config"); {
	case s.file == nil:
		add("config", value{"none", byDefault})
	case f.Changed:
		add("config", value{s.file.path, origin(f)})
	default:
		add("config", value{s.file.path, "found"})
	}
	url := s.storeURL()
	if url.text == "" {
		path, err := implicitStore()
		if err != nil {
			url.text = "none: " + err.Error()
		} else {
			url.text = "sqlite:" + path
		}
	}
	url.text = open.Redact(url.text)
	add("store", url)

	names, err := s.poolsInForce()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var p *poolConfig
		if s.file != nil {
			p = s.file.pool(name)
		}
		for _, k := range knobs {
			add("pools."+name+"."+k.name, s.knob(k, p))
		}
	}
	if s.file == nil {
		return append(all, s.serveInForce()...), nil
	}
	for i := range s.file.series {
		all = append(all, s.seriesInForce(&s.file.series[i], names[0])...)
	}
	for _, one := range s.file.servers {
		add("shards.servers."+one.name.text, s.value("", entry{open.Redact(one.url.text), one.url.at}, ""))
	}
	return append(all, s.serveInForce()...), nil
}

// seriesInForce are the settings of a series; pool is the one of a flake that names
// none, where there is none in the file.
func (s *settings) seriesInForce(one *seriesConfig, pool string) []settingLine {
	var all []settingLine
	add := func(key string, v value) {
		all = append(all, settingLine{"series." + one.name.text + "." + key, v.text, v.from})
	}
	kind := one.kind.text
	add("kind", s.value("", one.kind, ""))
	if kind == kindFlake {
		if p, err := s.file.poolOf(one); err == nil && p != nil {
			pool = p.name.text
		}
		add("pool", s.value("", one.pool, pool))
		add("shard", s.value("", one.shard, "0"))
	}
	for _, url := range one.stores {
		add("stores", s.value("", entry{open.Redact(url.text), url.at}, ""))
	}
	for _, k := range seriesKeys {
		if k.of(kind) {
			add(k.name, s.value(k.flagName(), one.keys[k.name], k.standard(kind)))
		}
	}
	if one.public != nil {
		add("public", s.value("", entry{one.public.String(), one.publicAt}, ""))
		add("answers", s.value("", one.answers, "id"))
	}
	return all
}

// poolsInForce are the names of the pools there are to lease from: that of
// --pool, those of the file, or [pool.Default].
func (s *settings) poolsInForce() ([]string, error) {
	if f := s.flags.Lookup("pool"); f.Changed || s.file == nil || len(s.file.pools) == 0 {
		name, _, err := s.pool("")
		return []string{name}, err
	}
	return s.file.poolNames(), nil
}

func printSettings(out io.Writer, all []settingLine, asJSON bool) error {
	return ui.Emit(out, asJSON, []string{"SETTING", "VALUE", "FROM"}, all, func(v settingLine) []any { return []any{v.Key, v.Value, v.From} })
}
