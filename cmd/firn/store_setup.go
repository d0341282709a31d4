package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/store/mysql"
	"github.com/firn-id/firn/store/open"
	"github.com/firn-id/firn/store/postgres"
)

func newStore() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "store",
		Short:   "Look after a store",
		Example: "  firn store setup --store postgres://admin@db/app",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newStoreSetup(), newStoreRecover())
	return cmd
}

func newStoreSetup() *cobra.Command {
	var printing bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the tables of a store; --print shows the SQL instead",
		Long: `Create what a store needs to keep records, its tables or nodes. It is for users whose
processes may not create them: otherwise the first write does it. What is there already
stays as it is, so the command may be repeated. It creates no pool: firn pool create.

With --print the command changes nothing and prints the SQL that it would run, and the
views that a person can read. The kind of database is that of --store, or the argument.`,
		Example: `  firn store setup --store postgres://admin@db/app
  firn store setup --store mysql://admin:secret@db/app --json
  firn store setup --print postgres | psql`,
		ValidArgs: []string{"postgres", "mysql"},
		Args:      arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			url := set.storeURL().text
			switch {
			case printing && len(args) > 0:
				return printSQL(cmd.OutOrStdout(), args[0], wantsJSON(cmd))
			case printing:
				kind, _, _ := strings.Cut(url, ":")
				return printSQL(cmd.OutOrStdout(), kind, wantsJSON(cmd))
			case len(args) > 0:
				return bad("%q is for --print; the tables are created in the store of --store", args[0]).hint("firn store setup --print %s", shellWord(args[0]))
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return signalled(ctx, setUpStore(ctx, url, cmd.OutOrStdout(), cmd.ErrOrStderr(), wantsJSON(cmd)))
		},
	}
	addStore(cmd)
	cmd.Flags().BoolVar(&printing, "print", false, "print the SQL and change nothing")
	return cmd
}

// A setupLine is what was created, as --json prints it.
type setupLine struct {
	Store   string `json:"store"`
	Created bool   `json:"created"`
}

func setUpStore(ctx context.Context, url string, out, errs io.Writer, asJSON bool) (err error) {
	s, err := openURL(ctx, url, sayMade(errs))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	created, err := s.Init(ctx)
	if err != nil {
		return err
	}
	line := setupLine{open.Redact(storeText(url)), created}
	switch {
	case asJSON:
		return json.NewEncoder(out).Encode(line)
	case created:
		_, err = fmt.Fprintf(out, "%s: created\n", line.Store)
	default:
		_, err = fmt.Fprintf(out, "%s: everything was there already\n", line.Store)
	}
	return err
}

// sqlTexts are the tables and views of the stores that have SQL.
var sqlTexts = map[string]func() string{
	"mysql":    mysql.SQL,
	"postgres": postgres.SQL,
}

func printSQL(out io.Writer, kind string, asJSON bool) error {
	if kind == "postgresql" {
		kind = "postgres"
	}
	text, ok := sqlTexts[kind]
	if !ok {
		var names []string
		for name := range sqlTexts {
			names = append(names, name)
		}
		slices.Sort(names)
		if kind == "" {
			return bad("--print needs to know which database: %s", strings.Join(names, " or ")).hint("firn store setup --print %s", names[len(names)-1])
		}
		return bad("%q has no SQL to print; %s have", kind, strings.Join(names, " and ")).hint("to create what a store needs: firn store setup")
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]string{"database": kind, "sql": text()})
	}
	_, err := fmt.Fprint(out, text())
	return err
}
