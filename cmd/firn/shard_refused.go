package main

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/shard/check"
	"github.com/firn-id/firn/shard/move"
	"github.com/firn-id/firn/shard/setup"
	"github.com/firn-id/firn/shard/topology"
)

// This file says what to do about a server that answers, and refuses. It runs, and is not lost: what
// helps is another role, another password or another address.

// asSuperuser stands in a hint for the addresses of all servers of the command, with the name of a
// superuser instead of the role.
const asSuperuser = "--server SERVER=postgres://SUPERUSER@HOST/DATABASE"

// asRole is [asSuperuser] with the name of a role.
func asRole(role string) string {
	return "--server SERVER=postgres://" + url.PathEscape(role) + "@HOST/DATABASE"
}

var roleFlag = regexp.MustCompile(`--server SERVER=postgres://([^\s@]+)@HOST/DATABASE`)

// addresses puts in the servers of the command where a hint has [asSuperuser] or [asRole]. All are
// named, because --server replaces those of firn.yaml.
func (h hinter) addresses(text string) string {
	if !roleFlag.MatchString(text) || flagOf(h.cmd, "server") == nil {
		return text
	}
	servers, err := shardServers(h.cmd)
	if err != nil {
		return text
	}
	return roleFlag.ReplaceAllStringFunc(text, func(found string) string {
		var flags []string
		for _, s := range servers {
			flags = append(flags, "--server "+phrase.ShellWord(s.Name+"="+addressAs(s, roleFlag.FindStringSubmatch(found)[1])))
		}
		return strings.Join(flags, " ")
	})
}

var otherAddress = regexp.MustCompile(`--server (\S+)=` + regexp.QuoteMeta(check.OtherAddress))

// otherAddresses adds the addresses of the servers of this command to a hint that has [check.OtherAddress], except
// that of the server which needs another address.
func (h hinter) otherAddresses(text string) string {
	if !otherAddress.MatchString(text) || flagOf(h.cmd, "server") == nil {
		return text
	}
	servers, err := shardServers(h.cmd)
	if err != nil {
		return text
	}
	return otherAddress.ReplaceAllStringFunc(text, func(found string) string {
		var flags []string
		other := otherAddress.FindStringSubmatch(found)[1]
		for _, s := range servers {
			if s.Name != other {
				flags = append(flags, "--server "+phrase.ShellWord(s.Name+"="+addressAs(s, url.PathEscape(s.Config.User))))
			}
		}
		return strings.Join(append(flags, found), " ")
	})
}

// notOfRole are settings of an address that are about the role, or that nobody else may see.
var notOfRole = []string{"user", "role", "password", "passfile", "sslpassword"}

// addressAs is the address of a server with the name of another role, and without a password.
func addressAs(s topology.Server, role string) string {
	u, err := url.Parse(s.Config.ConnString())
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") { // it was written in another form
		u = &url.URL{Scheme: "postgres", Path: "/" + s.Config.Database, RawQuery: url.Values{"host": {s.Config.Host}, "port": {strconv.Itoa(int(s.Config.Port))}}.Encode()}
	}
	if q := u.Query(); u.RawQuery != "" {
		for _, name := range notOfRole {
			q.Del(name)
		}
		if strings.Contains(q.Get("options"), "role") {
			q.Del("options")
		}
		u.RawQuery = q.Encode()
	}
	u.User = nil
	return "postgres://" + role + "@" + strings.TrimPrefix(u.String(), u.Scheme+"://")
}

// ofMover finds a command of a move with its shards and its server, in a text.
var ofMover = regexp.MustCompile(`\bfirn shard (?:move|revert|abort|finish|pause|resume) [0-9][0-9,-]*(?: --to [^\s;,:)]*[^\s;,:).])?`)

// nextOf is what to type next of a move, as [nextText]. Before PostgreSQL 16 only a superuser moves shards: where the
// role of the addresses is none, the commands of the move get the addresses with a superuser's name.
func nextOf(ctx context.Context, servers []topology.Server, f move.Move) string {
	text := nextText(f)
	if !ofMover.MatchString(text) {
		return text
	}
	for _, s := range servers {
		if (s.Name == f.Source || s.Name == f.Target) && needsSuperuser(ctx, s) {
			return ofMover.ReplaceAllString(text, "$0 "+asSuperuser)
		}
	}
	return text
}

// next is what to type next of a move, as [nextOf], with the flags of the command.
func (h hinter) next(f move.Move) string {
	if h.cmd == nil || flagOf(h.cmd, "server") == nil {
		return h.compose(nextText(f))
	}
	servers, err := shardServers(h.cmd)
	if err != nil {
		return h.compose(nextText(f))
	}
	return h.compose(nextOf(h.cmd.Context(), servers, f))
}

// needsSuperuser reports whether a server lets only superusers move shards, and the role of its address is none.
func needsSuperuser(ctx context.Context, s topology.Server) (needs bool) {
	// A server that does not say so is none to give another role for.
	_ = s.Ask(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT current_setting('server_version_num')::int < 160000 AND NOT rolsuper FROM pg_roles WHERE rolname = current_user").Scan(&needs)
	})
	return needs
}

// lacksRight reports whether a server has refused something to a role.
func lacksRight(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42501"
}

// otherRole is what to do where a move is another role's, as it is where a superuser began it.
const otherRole = "give the addresses with the name of the role that began the move, or of a superuser"

// whoseMove says which right is missing where a move is another role's.
const whoseMove = "the role that began the move owns its table firn_mark, its publications and subscriptions, and this role may not read or change them"

// sameCommand is what to do where a move is another role's: the same command with other addresses.
const sameCommand = "in the same command give these addresses instead, with the role that began the move, or a superuser: " + asSuperuser

// lookAgain is how a move is seen which the role may not see.
const lookAgain = otherRole + ": firn shard status " + asSuperuser

// refusalHint is the only thing to do about an error with which a server refuses the connection, or
// says that it knows nothing of shards; else empty.
func refusalHint(err error) string {
	var of *topology.ServerError
	var pg *pgconn.PgError
	if do := check.AddressDo(err); do != "" {
		return do + "; then run the same command again" + check.LostDo(err)
	}
	if errors.Is(err, topology.ErrNoCluster) || errors.Is(err, setup.ErrNoneInCluster) {
		return "if no server is in a cluster yet: firn shard init --count N; else, to see which server is in none, and why: firn shard doctor"
	}
	if !errors.As(err, &of) || !errors.As(of.Err, &pg) {
		return ""
	}
	switch pg.Code {
	case "28P01":
		return passwordHint(of) + "; then run the same command again"
	case "28000", "3D000":
		return "correct the address of server " + of.Server + ", then run the same command again"
	}
	return ""
}

// passwordHint says where the password comes from that a server has refused: one in the address
// counts more than PGPASSWORD, and that more than ~/.pgpass.
func passwordHint(err *topology.ServerError) string {
	var connect *pgconn.ConnectError
	if !errors.As(err, &connect) || connect.Config == nil || connect.Config.Password == "" {
		return "set the password of server " + err.Server + " in ~/.pgpass or PGPASSWORD, or correct the user in its address"
	}
	used, env := connect.Config.Password, os.Getenv("PGPASSWORD")
	where := "in its address"
	if env != "" && env == used {
		where = "in PGPASSWORD, which counts more than ~/.pgpass"
	} else if env == "" {
		u := url.URL{Scheme: "postgres", User: url.User(connect.Config.User), Host: net.JoinHostPort(connect.Config.Host, strconv.Itoa(int(connect.Config.Port))), Path: "/" + connect.Config.Database}
		if plain, err := pgconn.ParseConfig(u.String()); err == nil && plain.Password == used {
			where = "in ~/.pgpass"
		}
	}
	return "correct the password of server " + err.Server + " " + where + ", or the user in its address"
}

// serverCure is what to do about the error of one server among others, or empty.
func serverCure(err *topology.ServerError) string {
	if err.Away() {
		return "start it, or check its address; if it is permanently lost: " + lostPage
	}
	return refusalHint(err)
}

// unseen says which moves nobody can name, because a server refuses to say, or is empty. Where a
// server is away, or one of the moves says so, that is told already.
func unseen(moves []move.Move, err error) string {
	var of *topology.ServerError
	if !errors.As(err, &of) || of.Away() || !lacksRight(err) {
		return ""
	}
	for _, f := range moves {
		if f.Refused() {
			return ""
		}
	}
	return phrase.OneLine(err) + "; " + whoseMove + ": " + lookAgain
}
