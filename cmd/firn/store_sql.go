package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/store/mysql"
	"github.com/firn-id/firn/store/postgres"
)

// sqlTexts are the tables and views of the stores that have SQL.
var sqlTexts = map[string]func() string{
	"mysql":    mysql.SQL,
	"postgres": postgres.SQL,
}

func newStoreSQL() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql [postgres|mysql]",
		Short: "Print the SQL that makes a store's table and views",
		Long: `Print the SQL with which a store's table is made, and views in which a person can
read it: for who runs it by hand, or wants to see it first. It is what store init
runs. Without an argument the kind of database is that of --store.`,
		Example: `  firn store sql postgres | psql
  firn store sql mysql > firn.sql`,
		ValidArgs: []string{"postgres", "mysql"},
		Args:      arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind := strings.Join(args, "")
			if kind == "" {
				set, err := loadSettings(cmd)
				if err != nil {
					return err
				}
				kind, _, _ = strings.Cut(set.storeURL().text, ":")
			}
			return printSQL(cmd.OutOrStdout(), kind, wantsJSON(cmd))
		},
	}
	addStore(cmd)
	return cmd
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
			return bad("of which database? there are %s", strings.Join(names, ", ")).hint("firn store sql %s", names[len(names)-1])
		}
		return bad("%q has no SQL to run; %s have", kind, strings.Join(names, ", ")).hint("firn store init makes what a store needs")
	}
	if asJSON {
		return json.NewEncoder(out).Encode(map[string]string{"database": kind, "sql": text()})
	}
	_, err := fmt.Fprint(out, text())
	return err
}
