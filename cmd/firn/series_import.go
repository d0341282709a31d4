package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/takeover"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/store"
)

func newSeriesImport() *cobra.Command {
	var o seriesImport
	cmd := &cobra.Command{
		Use:   "import --query SQL --db URL",
		Short: "Create series from another system's table of counters",
		Long: `Begin a sequence for each row of a table of counters: of Leaf, tinyid, a
SEQ_NAME table, or any other. --query is a SELECT of three columns: a name, the highest
number that was given out or reserved, and the step, which is how many numbers a
process reserves at a time. It is run in --db, and has to be one query, without
comments, that only reads. --db has to be the primary: a replica may be behind.
It is run in a transaction for reading. It is not run where it, or a view that it reads,
runs something VOLATILE of PostgreSQL, or calls a function of MySQL or MariaDB that is not
known to only read, such as every stored function. What a function of PostgreSQL does that
its owner declared STABLE, nobody checks: write the SELECT over tables.

Each series begins one step above that number. The step between is for a process of
the old system that reserves once more while this looks: stop them all first, or take
the table away from them, as docs/coming-from says. --leave-steps N leaves N steps; 0 none.

Of PostgreSQL, pg_sequences shows NULL for a sequence that your role may not read: the
command warns of those, and refuses where the query names one.

--dry-run shows what would be, and writes nothing. A series that exists and continues
above the number stays as it is; one that continues below it is raised. None is ever
lowered. Where a row cannot be, because it has NULLs, a name that a series cannot
have, or numbers that this series has given out here, each such row is reported, and
nothing is written. The command may be repeated, also after an error.`,
		Example: `  firn series import --query 'SELECT biz_tag, max_id, step FROM leaf_alloc' --db mysql://leaf@db/leaf --next --dry-run
  firn series import --query 'SELECT biz_type, max_id, step FROM tiny_id_info' --db mysql://tiny@db/tinyid
  firn series import --query "SELECT sequencename, last_value, 100 FROM pg_sequences WHERE last_value > 0 AND schemaname <> 'firn' AND sequencename NOT LIKE 'next_id_%'" --db postgres://app@db/app`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return o.run(ctx, cmd)
		},
	}
	addStore(cmd)
	cmd.Flags().StringVar(&o.from, "query", "", "a SELECT of three columns: name, highest number given, step")
	cmd.Flags().StringVar(&o.db, "db", "", "where it is run: postgres://USER:PASSWORD@HOST/DATABASE, mysql://..., sqlite:PATH; best as the variable FIRN_DB")
	cmd.Flags().BoolVar(&o.next, "next", false, "the second column has the next number, not the last one")
	cmd.Flags().Int64Var(&o.above, "leave-steps", 1, "how many steps to leave between that number and the first one here")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "show what would be, and write nothing")
	addSeriesKey(cmd, "on-lossy-store")
	return cmd
}

// addSeriesKey adds the flag of one key of a series.
func addSeriesKey(cmd *cobra.Command, name string) {
	k := config.KeyNamed(config.CounterKeys, name)
	cmd.Flags().Var(&seriesFlag{Key: k}, k.Name, k.Usage)
}

type seriesImport struct {
	from, db string
	next     bool
	above    int64
	dry      bool
}

func (o *seriesImport) run(ctx context.Context, cmd *cobra.Command) error {
	switch {
	case strings.TrimSpace(o.from) == "":
		return ui.Bad("from which table? --query is missing").Hint("--query 'SELECT biz_tag, max_id, step FROM leaf_alloc' --db mysql://USER:PASSWORD@HOST/DATABASE")
	case o.db == "":
		return ui.Bad("where is the table? --db is missing").Hint("--db mysql://USER:PASSWORD@HOST/DATABASE, postgres://... or sqlite:PATH")
	case o.above < 0 || o.above > takeover.MaxLeaveSteps:
		return ui.Bad("--leave-steps %d: it is 0 to %d steps", o.above, takeover.MaxLeaveSteps)
	}
	s, err := loadSettings(cmd)
	if err != nil {
		return err
	}
	rows, left, err := takeover.Read(ctx, o.db, o.from)
	if left != nil {
		warnOfLeftOut(cmd, left)
	}
	if err != nil {
		return o.explain(err)
	}
	made := sayMade(cmd.ErrOrStderr())
	if o.dry {
		made = nil
	}
	st, err := open.Store(ctx, s.StoreURL().Text, made)
	switch {
	case o.dry && errors.As(err, new(*open.NoStoreError)):
		return o.all(ctx, cmd, s, rows, nil)
	case err != nil:
		return err
	}
	return errors.Join(o.all(ctx, cmd, s, rows, st), st.Close())
}

// warnOfLeftOut says which sequences of PostgreSQL the query could not read.
func warnOfLeftOut(cmd *cobra.Command, left *takeover.LeftOut) {
	ui.WarnHinting(cmd.ErrOrStderr(), []string{fmt.Sprintf("if you need one of them, have the owner type: %s; then run the command again", left.Grant())},
		"the role %s may not read %s, so pg_sequences shows NULL for it, and nothing of it is imported", left.Role, strings.Join(left.Sequences, ", "))
}

// explain adds to an error what can be done about it, with the flags that were given. Those that
// other commands have too, such as --db, are added where hints are printed.
func (o *seriesImport) explain(err error) error {
	var lossy *sequence.LossyError
	if errors.As(err, &lossy) {
		return (&drawing{Series: &config.Series{Name: lossy.Name, Kind: config.Sequence}}).explain(err)
	}
	var refused *takeover.Error
	if !errors.As(err, &refused) {
		return err
	}
	flags := ""
	if o.next {
		flags += " --next"
	}
	if o.above != 1 {
		flags += fmt.Sprintf(" --leave-steps %d", o.above)
	}
	if o.dry {
		flags += " --dry-run"
	}
	f := ui.Failed("%w", err)
	if refused.Usage {
		f = ui.Bad("%w", err)
	}
	for _, text := range refused.Advice {
		f.Hint("%s", strings.ReplaceAll(text, takeover.WrittenOut, takeover.WrittenOut+flags))
	}
	return f
}

// all imports the rows, or shows how. Without a store none is there yet.
func (o *seriesImport) all(ctx context.Context, cmd *cobra.Command, s *settings, rows []takeover.Row, st store.Store) error {
	plan := takeover.Plan{Next: o.next, LeaveSteps: o.above, Settings: s.Config}
	all, err := plan.Judge(ctx, st, rows)
	if err == nil && !o.dry {
		err = carryOut(ctx, cmd, st, all)
	}
	if err != nil {
		return o.explain(err)
	}
	if err := printImports(cmd, all, o.dry); err != nil || wantsJSON(cmd) {
		return err
	}
	return summarise(cmd, s, all, o.dry)
}

// carryOut writes the plan to the store, and shows its progress.
func carryOut(ctx context.Context, cmd *cobra.Command, st store.Store, all []takeover.Import) error {
	var done atomic.Int64
	show := ui.ShowProgressOf("series", true, cmd.ErrOrStderr(), int64(len(all)), &done)
	defer show.Stop()
	return takeover.CarryOut(ctx, st, all, &done)
}

// An importLine is a series that is takeover.Import, as --json prints it.
type importLine struct {
	Series string `json:"series"`
	Row    int    `json:"row"`
	Given  int64  `json:"given,string"`
	Step   int64  `json:"step"`
	First  int64  `json:"first,string"` // the next number here
	Does   string `json:"does"`         // begin, raise, keep
	Dry    bool   `json:"dry_run,omitempty"`
}

func printImports(cmd *cobra.Command, all []takeover.Import, dry bool) error {
	out := cmd.OutOrStdout()
	enc := json.NewEncoder(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SERIES\tGIVEN\tSTEP\tFIRST HERE\tDOES")
	for _, m := range all {
		if wantsJSON(cmd) {
			if err := enc.Encode(importLine{m.Name, m.Row, m.Given, m.Step, m.First, string(m.Does), dry}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\n", m.Name, m.Given, m.Step, m.First, m.Does)
	}
	if wantsJSON(cmd) {
		return nil
	}
	return w.Flush()
}

// summarise says on standard error what was done, and what you have to do next.
func summarise(cmd *cobra.Command, s *settings, all []takeover.Import, dry bool) error {
	n := map[takeover.Deed]int{}
	var unnamed []string
	for _, m := range all {
		n[m.Does]++
		if m.Unnamed {
			unnamed = append(unnamed, m.Name)
		}
	}
	text := fmt.Sprintf("series: %d begun, %d raised, %d kept", n[takeover.Begin], n[takeover.Raise], n[takeover.Keep])
	if dry {
		text = fmt.Sprintf("nothing was written; without --dry-run: %d to begin, %d to raise, %d to keep", n[takeover.Begin], n[takeover.Raise], n[takeover.Keep])
	}
	errs := cmd.ErrOrStderr()
	_, err := fmt.Fprintln(errs, text)
	if len(unnamed) > 0 {
		_, err = fmt.Fprintf(errs, "firn: hint: %s lacks %s: { kind: %s }\n", s.File.Path, strings.Join(unnamed, ", "), config.Sequence)
	}
	return err
}
