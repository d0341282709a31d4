package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config/open"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	"github.com/firn-id/firn/store"
	fromurl "github.com/firn-id/firn/store/open"
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
	var printing, second bool
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Create the tables of a store; --print shows the SQL, ACL or RBAC instead",
		Long: `Create what a store needs to keep records, its tables or nodes. It is for users whose
processes may not create them: otherwise the first write does it. What is there already
stays as it is, so the command may be repeated. It creates no pool: firn pool create.

With --print the command changes nothing and prints what an administrator executes instead:
SQL for postgres and mysql, an ACL command for redis, commands of etcdctl for etcd. The text
also makes the role firn, with a new password and with no more rights than your programs
need. The kind of store is the argument, or that of --store.

Two stores in one PostgreSQL database are two schemas, which search_path chooses. Where
another schema has a store, the command refuses: a mistyped search_path would begin a
second store, which repeats the ids of the first. --second creates one on purpose.`,
		Example: `  firn store setup --store postgres://admin@db/app
  firn store setup --store mysql://admin:secret@db/app --json
  firn store setup --print postgres | psql -h db app
  firn store setup --print redis | redis-cli -h cache`,
		ValidArgs: fromurl.SetupKinds(),
		Args:      arguments(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			url := set.StoreURL().Text
			switch {
			case printing && len(args) > 0:
				return printSetup(cmd, args[0])
			case printing && second:
				return ui.Bad("--second creates tables, and --print changes nothing").Hint("leave one of the two out")
			case printing:
				return printSetup(cmd, url)
			case len(args) > 0:
				return ui.Bad("%q is for --print; the tables are created in the store of --store", args[0]).Hint("firn store setup --print %s", phrase.ShellWord(args[0]))
			}
			ctx := cmd.Context()
			return setUpStore(ctx, url, second, cmd.OutOrStdout(), cmd.ErrOrStderr(), wantsJSON(cmd))
		},
	}
	addStore(cmd)
	cmd.Flags().BoolVar(&printing, "print", false, "print the SQL, ACL or RBAC commands and change nothing")
	cmd.Flags().BoolVar(&second, "second", false, "create a second store in a PostgreSQL database; its ids may equal those of the first")
	return cmd
}

// A setupLine is what was created, as --json prints it.
type setupLine struct {
	Store   string `json:"store"`
	Created bool   `json:"created"`
}

func setUpStore(ctx context.Context, url string, second bool, out, errs io.Writer, asJSON bool) (err error) {
	madeFile, say := false, sayMade(errs)
	s, err := open.Store(ctx, url, func(path string, implicit bool) {
		madeFile = true
		say(path, implicit)
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	setUp := s.Init
	if second {
		db, ok := layerOf[interface {
			InitSecond(ctx context.Context) (made bool, err error)
		}](s)
		if !ok {
			return ui.Bad("--second is for a PostgreSQL database, and this store is %s", fromurl.Redact(whichstore.Text(url))).Hint("leave --second out")
		}
		setUp = db.InitSecond
	}
	created, err := setUp(ctx)
	if err != nil {
		return err
	}
	created = created || madeFile
	_, isFile := whichstore.File(url)
	line := setupLine{fromurl.Redact(whichstore.Text(url)), created}
	switch {
	case asJSON:
		return json.NewEncoder(out).Encode(line)
	case created:
		_, err = fmt.Fprintf(out, "%s: created\n", line.Store)
	case !s.HasSetup() && !isFile:
		_, err = fmt.Fprintf(out, "%s: nothing to create: a store of this kind needs no table and no node before its first record\n", line.Store)
	default:
		_, err = fmt.Fprintf(out, "%s: everything was there already\n", line.Store)
	}
	if grant := grantOf(ctx, s); grant != "" {
		err = errors.Join(err, ui.PrintNote(errs, "where your programs use another role, it needs: %s", grant))
	}
	return err
}

// grantOf is what another user of the store's tables is granted, or "" where the store has
// no tables, or does not say where they are.
func grantOf(ctx context.Context, s store.Store) string {
	g, ok := layerOf[interface {
		Grant(ctx context.Context) (string, error)
	}](s)
	if !ok {
		return ""
	}
	text, _ := g.Grant(ctx)
	return text
}

// layerOf is the first of a store, and of the stores that it wraps, that is a T.
func layerOf[T any](s store.Store) (layer T, ok bool) {
	for s != nil {
		if layer, ok = s.(T); ok {
			return layer, true
		}
		u, wraps := s.(interface{ Unwrap() store.Store })
		if !wraps {
			break
		}
		s = u.Unwrap()
	}
	return layer, false
}

// A setupText is what an administrator executes, as --json prints it.
type setupText struct {
	Kind     string `json:"kind"`
	Text     string `json:"text"`
	Role     string `json:"role"`
	Password string `json:"password"`
}

// printSetup prints what an administrator executes to set up a store of that URL or kind. The
// password is a new one, so that the text is safe to execute as it stands.
func printSetup(cmd *cobra.Command, at string) error {
	kinds := strings.Join(fromurl.SetupKinds(), ", ")
	if at == "" {
		return ui.Bad("--print needs to know which kind of store: %s", kinds).Hint("firn store setup --print postgres")
	}
	password := strings.ToLower(rand.Text())
	text, err := fromurl.SetupText(at, password)
	if err != nil {
		return ui.Bad("%w", err).Hint("these kinds of stores have something to print: %s; to create what another one needs: firn store setup", kinds)
	}
	if wantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(setupText{fromurl.SetupKind(at), text, fromurl.SetupRole, password})
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), text); err != nil {
		return err
	}
	return ui.PrintNote(cmd.ErrOrStderr(), "the text makes the role %s with a new password: %s; your programs then name the store as %s:%[2]s@HOST/...", fromurl.SetupRole, password, fromurl.SetupKind(at)+"://"+fromurl.SetupRole)
}
