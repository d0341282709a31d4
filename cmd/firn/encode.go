package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/inspect"
	"github.com/firn-id/firn/internal/nearest"
	"github.com/firn-id/firn/internal/ui"
)

func newEncode() *cobra.Command {
	var o encodeOptions
	cmd := &cobra.Command{
		Use:   "encode --layout LAYOUT --time TIME",
		Short: "Print the first or last id of a time, for range queries",
		Long: `Print the first id that any worker can make in the tick that holds an instant, or
the last with --last: the ends of a range scan over a column of ids. --set gives
fields their values; those it leaves out are 0, or the highest with --last.

With --time nothing is leased: an id printed here may have been issued already.

A time is RFC 3339 (2026-01-01T00:00:00Z), a date (in UTC), now, a span from now
(-1h, +90m, -7d), or milliseconds since 1970.

For ids of rows that have dates of their own: firn backfill.`,
		Example: `  firn encode --layout firn --time 2026-01-01
  firn encode --layout firn --time -1h --last
  firn encode --layout discord --time 2016-04-30T11:18:25.796Z --set worker=1,process=0,seq=7`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := o.encode(time.Now())
			if err != nil {
				return err
			}
			line := append(strconv.AppendInt(nil, int64(id), 10), '\n')
			if wantsJSON(cmd) {
				var r inspect.Reading
				if err := inspect.NewDecoder(o.layout.Layout).Decode(id, &r); err != nil {
					return err
				}
				line = append(r.AppendJSON(nil, line[:len(line)-1]), '\n')
			}
			_, err = cmd.OutOrStdout().Write(line)
			return err
		},
	}
	addLayout(cmd, &o.layout, "the layout of the id: a preset or a spec; firn layout ls")
	cmd.Flags().StringVar(&o.time, "time", "", "the instant")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "values of fields, such as worker=3,seq=7")
	cmd.Flags().BoolVar(&o.last, "last", false, "the last id of the tick, not the first")
	return cmd
}

type encodeOptions struct {
	layout layoutFlag
	time   string
	set    []string
	last   bool
}

func (o *encodeOptions) encode(now time.Time) (firn.ID, error) {
	switch {
	case !o.layout.IsValid():
		return 0, ui.Bad("--layout is missing").Hint("--layout firn; to list the others: firn layout ls")
	case o.time == "":
		return 0, ui.Bad("--time is missing").Hint("--time now, --time 2026-01-01, --time -1h")
	}
	at, err := parseTime(o.time, now)
	if err != nil {
		return 0, err
	}
	if at.Before(o.layout.Epoch()) {
		return 0, ui.Bad("--time: layout %s begins at %s, after %s",
			layoutName(o.layout.Layout), o.layout.Epoch().Format(time.RFC3339Nano), at.UTC().Format(time.RFC3339Nano))
	}
	values, err := o.values()
	if err != nil {
		return 0, err
	}
	parts := firn.Parts{Time: at}
	for f := range o.layout.Fields() {
		v, given := values[f.Name]
		switch {
		case f.Name == "time":
			continue
		case !given && o.last:
			v = f.Max()
		}
		switch f.Name {
		case "shard":
			parts.Shard = v
		case "seq":
			parts.Seq = v
		default: // the worker fields together are one number
			parts.Worker = parts.Worker<<f.Width | v
		}
	}
	if at.Equal(o.layout.Epoch()) && !o.last && len(values) == 0 {
		first, _, err := o.layout.Bounds(at, at) // which knows that 0 is no id
		return first, asUsage(err)
	}
	id, err := o.layout.Encode(parts)
	return id, asUsage(err)
}

// values are the fields that --set gives, each in its range.
func (o *encodeOptions) values() (map[string]int64, error) {
	values := map[string]int64{}
	for _, list := range o.set {
		for pair := range strings.SplitSeq(list, ",") {
			name, text, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, ui.Bad("--set: %q is not of the form FIELD=NUMBER", pair).Hint("--set worker=3,seq=7")
			}
			f, err := o.field(name)
			if err != nil {
				return nil, err
			}
			if _, twice := values[name]; twice {
				return nil, ui.Bad("--set: %s is there twice", name)
			}
			v, err := strconv.ParseInt(text, 10, 64)
			if err != nil || v < 0 || v > f.Max() {
				return nil, ui.Bad("--set: %s is 0 to %d in layout %s, not %s", name, f.Max(), layoutName(o.layout.Layout), text)
			}
			values[name] = v
		}
	}
	return values, nil
}

// field returns the field of that name, which is not the time.
func (o *encodeOptions) field(name string) (firn.Field, error) {
	var names []string
	for f := range o.layout.Fields() {
		switch {
		case f.Name == "time":
		case f.Name == name:
			return f, nil
		default:
			names = append(names, f.Name)
		}
	}
	if name == "time" {
		return firn.Field{}, ui.Bad("--set: the time is set with --time")
	}
	f := ui.Bad("--set: layout %s has no field %q; it has %s", layoutName(o.layout.Layout), name, strings.Join(names, ", "))
	if near := nearest.Name(name, names); near != "" {
		f = f.Hint("is it %s?", near)
	}
	return firn.Field{}, f
}

// asUsage makes an error of the library one of what it was given.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return ui.Bad("%w", err)
}

// parseTime reads an instant in any of the forms that the help of encode lists.
func parseTime(text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	if t, ok := inspect.ParseTime(text); ok {
		return t, nil
	}
	if span := strings.TrimLeft(text, "+-"); len(span) == len(text)-1 {
		if days, ok := strings.CutSuffix(span, "d"); ok {
			if n, err := strconv.ParseUint(days, 10, 31); err == nil {
				if text[0] == '-' {
					return now.AddDate(0, 0, -int(n)), nil
				}
				return now.AddDate(0, 0, int(n)), nil
			}
		}
		if d, err := time.ParseDuration(text); err == nil {
			return now.Add(d), nil
		}
	}
	return time.Time{}, ui.Bad("--time: %q is not a time", text).
		Hint("2026-01-01T00:00:00Z, 2026-01-01, now, -1h, or milliseconds since 1970")
}
