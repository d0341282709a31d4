package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
)

func newShardsStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the servers and how many shards each serves",
		Long: `Show each server: whether it answers, how many shards it serves, how many are closed
there or have moved away, the size of its database, and how far its clock is from
this host's. Then the moves that are under way or were not finished: how far each is,
and how much of what was written is not on the other server yet. Then what is wrong
with the cluster as a whole, if anything is.

With --json there is an object for each server, which has a "server", and one for each
move, which has a "move".

firn shards doctor looks closer, and ends with 3 if something is wrong.`,
		Example: `  firn shards status
  firn shards status --server a=postgres://firn@db1/app --json`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			servers, err := shardServers(cmd)
			if err != nil {
				return err
			}
			seen := check.Look(ctx, servers)
			// Who does not answer is in the table, and the others' moves are shown.
			flights, _ := move.Flights(ctx, servers)
			if err := signalled(ctx, ctx.Err()); err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), seen, flights, wantsJSON(cmd))
		},
	}
	addServers(cmd)
	return cmd
}

// A serverLine is a server as --json prints it.
type serverLine struct {
	Server      string  `json:"server"`
	Error       string  `json:"error,omitempty"`
	Cluster     string  `json:"cluster,omitempty"`
	Version     string  `json:"version,omitempty"` // of PostgreSQL
	Standby     bool    `json:"standby,omitempty"`
	Serves      int     `json:"serves"`
	Closed      int     `json:"closed"`
	Moved       int     `json:"moved"`
	Bytes       int64   `json:"bytes"`
	ClockOffset float64 `json:"clock_offset_seconds"`
}

func newServerLine(s *check.Server) serverLine {
	l := serverLine{Server: s.Name}
	if s.Err != nil {
		l.Error = withoutPackage(s.Err.Error())
		return l
	}
	l.Cluster, l.Standby, l.Bytes = s.Cluster, s.Standby, s.Bytes
	l.Version = fmt.Sprintf("%d.%d", s.Version/10000, s.Version%10000)
	l.ClockOffset = s.Offset.Seconds()
	for _, row := range s.Shards {
		switch {
		case row.State == shard.StateMoved:
			l.Moved++
		case row.State == shard.StateOpen && row.Here:
			l.Serves++
		default:
			l.Closed++
		}
	}
	return l
}

// A flightLine is a move as --json prints it.
type flightLine struct {
	Move      string    `json:"move"` // its batch
	From      string    `json:"from"`
	To        string    `json:"to"`
	Phase     string    `json:"phase"`
	Shards    []int64   `json:"shards"`
	Moved     []int64   `json:"moved"`
	Rows      int64     `json:"rows"`
	RowsTotal int64     `json:"rows_total"`
	Lag       *int64    `json:"lag_bytes,omitempty"`
	Since     time.Time `json:"since"`
	Problem   string    `json:"problem,omitempty"`
}

func newFlightLine(f move.Flight) flightLine {
	l := flightLine{
		Move: f.Batch, From: f.Source, To: f.Target, Phase: string(f.Phase), Shards: f.Shards, Moved: append([]int64{}, f.Moved...),
		Rows: f.Rows, RowsTotal: f.RowsTotal, Since: f.Began.UTC(), Problem: f.Problem,
	}
	if f.Lag >= 0 {
		l.Lag = &f.Lag
	}
	return l
}

// printMoves prints what is under way.
func printMoves(out io.Writer, flights []move.Flight) error {
	if len(flights) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nMOVING\tFROM\tTO\tPHASE\tROWS\tBEHIND\tFOR\t")
	for _, f := range flights {
		phase, behind := string(f.Phase), "?"
		if len(f.Moved) > 0 && len(f.Moved) < len(f.Shards) {
			phase += fmt.Sprintf(", %d of %d moved", len(f.Moved), len(f.Shards))
		}
		if f.Lag >= 0 {
			behind = byteText(f.Lag)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\n", ranges(f.Shards), f.Source, f.Target, phase, f.Rows, f.RowsTotal, behind,
			time.Since(f.Began).Round(time.Second), f.Problem)
	}
	return w.Flush()
}

func printStatus(out io.Writer, seen []*check.Server, flights []move.Flight, asJSON bool) error {
	enc := json.NewEncoder(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERVER\tPOSTGRESQL\tSERVES\tCLOSED\tMOVED\tSIZE\tCLOCK")
	views := make(map[string]*shard.View)
	for _, s := range seen {
		l := newServerLine(s)
		if s.Err == nil {
			views[s.Name] = s.View
		}
		switch {
		case asJSON:
			if err := enc.Encode(l); err != nil {
				return err
			}
		case l.Error != "":
			fmt.Fprintf(w, "%s\t%s\n", l.Server, l.Error)
		default:
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t%s\t%+.3fs\n", l.Server, l.Version, l.Serves, l.Closed, l.Moved, byteText(l.Bytes), l.ClockOffset)
		}
	}
	if asJSON {
		for _, f := range flights {
			if err := enc.Encode(newFlightLine(f)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := printMoves(out, flights); err != nil {
		return err
	}
	for _, f := range check.Together(views, len(views) == len(seen)) {
		if _, err := fmt.Fprintf(out, "%s: %s\n", f.Level, f.Text); err != nil {
			return err
		}
	}
	return nil
}

// byteText is a number of bytes for people.
func byteText(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1000, 0
	for f >= 999.5 && i < len(units)-1 {
		f, i = f/1000, i+1
	}
	return fmt.Sprintf("%.3g %cB", f, units[i])
}
