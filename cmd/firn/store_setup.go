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

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/mysql"
	fromurl "github.com/firn-id/firn/store/open"
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

With --print the command changes nothing and prints the SQL that it would run, with the
views that a person can read and, as a comment, what the role of your programs is granted. The kind of database is that of --store, or the argument.`,
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
			url := set.StoreURL().Text
			switch {
			case printing && len(args) > 0:
				return printSQL(cmd.OutOrStdout(), args[0], wantsJSON(cmd))
			case printing:
				return printSQL(cmd.OutOrStdout(), url, wantsJSON(cmd))
			case len(args) > 0:
				return ui.Bad("%q is for --print; the tables are created in the store of --store", args[0]).Hint("firn store setup --print %s", phrase.ShellWord(args[0]))
			}
			ctx := cmd.Context()
			return setUpStore(ctx, url, cmd.OutOrStdout(), cmd.ErrOrStderr(), wantsJSON(cmd))
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
	s, err := open.Store(ctx, url, sayMade(errs))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	created, err := s.Init(ctx)
	if err != nil {
		return err
	}
	line := setupLine{fromurl.Redact(open.StoreText(url)), created}
	switch {
	case asJSON:
		return json.NewEncoder(out).Encode(line)
	case created:
		_, err = fmt.Fprintf(out, "%s: created\n", line.Store)
	default:
		_, err = fmt.Fprintf(out, "%s: everything was there already\n", line.Store)
	}
	if grant := grantOf(ctx, s); grant != "" {
		_, failed := fmt.Fprintf(errs, "where your programs use another role, it needs: %s\n", grant)
		err = errors.Join(err, failed)
	}
	return err
}

// grantOf is what another user of the store's tables is granted, or "" where the store has
// no tables, or does not say where they are.
func grantOf(ctx context.Context, s store.Store) string {
	for s != nil {
		if g, ok := s.(interface {
			Grant(ctx context.Context) (string, error)
		}); ok {
			text, _ := g.Grant(ctx)
			return text
		}
		u, ok := s.(interface{ Unwrap() store.Store })
		if !ok {
			return ""
		}
		s = u.Unwrap()
	}
	return ""
}

// grants are the same for printed SQL, which is for no database in particular.
var grants = map[string]string{
	"mysql":    "GRANT SELECT, INSERT, UPDATE ON DATABASE.firn_records TO 'USER'@'HOST';",
	"postgres": "GRANT USAGE ON SCHEMA SCHEMA TO ROLE; GRANT SELECT, INSERT, UPDATE ON SCHEMA.firn_records TO ROLE; -- SCHEMA: that of the table, public if search_path names none",
}

// databaseKind is the kind of database of a URL or an argument.
func databaseKind(text string) string {
	kind, _, _ := strings.Cut(text, ":")
	if kind == "postgresql" {
		return "postgres"
	}
	return kind
}

// sqlTexts are the tables and views of the stores that have SQL.
var sqlTexts = map[string]func() string{
	"mysql":    mysql.SQL,
	"postgres": postgres.SQL,
}

func printSQL(out io.Writer, kind string, asJSON bool) error {
	kind = databaseKind(kind)
	text, ok := sqlTexts[kind]
	if !ok {
		var names []string
		for name := range sqlTexts {
			names = append(names, name)
		}
		slices.Sort(names)
		if kind == "" {
			return ui.Bad("--print needs to know which database: %s", strings.Join(names, " or ")).Hint("firn store setup --print %s", names[len(names)-1])
		}
		return ui.Bad("%q has no SQL to print; %s have", kind, strings.Join(names, " and ")).Hint("to create what a store needs: firn store setup")
	}
	sql := text() + "\n-- Where your programs use another role than the one that runs this, it needs no more than:\n-- " + grants[kind] + "\n"
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]string{"database": kind, "sql": sql})
	}
	_, err := fmt.Fprint(out, sql)
	return err
}
