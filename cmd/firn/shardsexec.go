package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/shard"
	"github.com/firn-id/firn/shard/move"
)

func newShardsExec() *cobra.Command {
	var o shardsExec
	cmd := &cobra.Command{
		Use:   "exec SQL",
		Short: "Run one SQL statement on every shard and gather what it gives",
		Long: `Run one SQL statement on every shard, and print the rows of all, each with its shard,
in the order of the shards. Names mean the shard's own, and then public's.

Each shard has a transaction of its own, which reads only, unless --write is given. A
function that is called may still do what is no change of a table: write a file, end a
session. Use a role that may not.
There is none over all shards: each is as of a moment of its own, and where one fails
the others go on.

Of each shard the first 1000 rows are printed, or as many as --limit says (0: all). Where a
shard has more, and no --limit was given, the exit code is 1: the rows are incomplete. With
--write all is written, and the rest is not printed.`,
		Example: `  firn shards exec "SELECT count(*) FROM photos"
  firn shards exec "SELECT id, name FROM users WHERE name LIKE 'a%'" --shards 0-9,12 --limit 20
  firn shards exec "UPDATE users SET name = trim(name)" --write --json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return o.run(ctx, cmd, args[0])
		},
	}
	addServers(cmd)
	cmd.Flags().Var(&o.shards, "shards", "only these shards, such as 0-9,12 (all)")
	cmd.Flags().BoolVar(&o.write, "write", false, "let it write")
	cmd.Flags().IntVar(&o.limit, "limit", 1000, "how many rows of each shard to take; 0 takes all")
	cmd.Flags().IntVar(&o.perServer, "per-server", 4, "how many shards of a server at once")
	cmd.Flags().BoolVar(&o.csv, "csv", false, "print CSV")
	return cmd
}

type shardsExec struct {
	shards           shardNumbers
	write, csv       bool
	limit, perServer int
}

// isCopy finds a COPY: the server would wait for what it reads.
var isCopy = regexp.MustCompile(`(?i)^copy\b`)

// isRead finds a statement of a kind that reads. The transaction is read-only besides; but
// other kinds, such as DO, can do more than change tables.
var isRead = regexp.MustCompile(`(?i)^(select|with|values|table|show|explain)\b`)

// firstWords is a statement without the spaces, brackets and comments that it begins with, as
// PostgreSQL reads them: comments of the second kind may stand in each other.
func firstWords(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v(")
		switch {
		case strings.HasPrefix(sql, "--"):
			end := strings.IndexAny(sql, "\r\n")
			if end < 0 {
				return ""
			}
			sql = sql[end:]
		case strings.HasPrefix(sql, "/*"):
			sql = afterComment(sql)
		default:
			return sql
		}
	}
}

// afterComment is what follows the comment that a statement begins with; empty: it has no end.
func afterComment(sql string) string {
	depth := 0
	for sql != "" {
		switch {
		case strings.HasPrefix(sql, "/*"):
			depth, sql = depth+1, sql[2:]
		case strings.HasPrefix(sql, "*/"):
			depth, sql = depth-1, sql[2:]
		default:
			sql = sql[1:]
		}
		if depth == 0 {
			break
		}
	}
	return sql
}

// beginsWithComment finds an argument that is no flag, though it begins like one: a line of
// comment comes first.
var beginsWithComment = regexp.MustCompile(`^--(\W|[^=\r\n]*[\r\n])`)

// withStatement has a statement of firn shards exec that begins with a comment read as an
// argument.
func withStatement(args []string) []string {
	at := slices.Index(args, "exec")
	if at < 0 {
		return args
	}
	args = slices.Clone(args)
	for i := at; i < len(args); i++ {
		if beginsWithComment.MatchString(args[i]) {
			args[i] = " " + args[i]
		}
	}
	return args
}

func (o *shardsExec) run(ctx context.Context, cmd *cobra.Command, sql string) error {
	switch words := firstWords(sql); {
	case words == "":
		return ui.Bad("there is no statement").Hint(`firn shards exec "SELECT count(*) FROM users"`)
	case isCopy.MatchString(words):
		return ui.Bad("COPY has nothing to read from or to write to here").Hint("SELECT, with --csv; or INSERT")
	case !o.write && !isRead.MatchString(words):
		return ui.Bad("without --write a statement begins with SELECT, WITH, VALUES, TABLE, SHOW or EXPLAIN").
			Hint("if it may change something: the same command with --write")
	case o.limit < 0:
		return ui.Bad("--limit %d: it is 0 for all rows, or how many of each shard to take", o.limit)
	case o.perServer < 1:
		return ui.Bad("--per-server %d: it is 1 at least", o.perServer)
	case o.csv && wantsJSON(cmd):
		return ui.Bad("--csv and --json: it is one of them")
	}
	servers, err := shardServers(cmd)
	if err != nil {
		return err
	}
	pools, err := openPools(ctx, servers, o.perServer)
	if err != nil {
		return err
	}
	defer closePools(pools) // waits until statements that were broken off have ended
	cluster, err := shard.Open(ctx, pools, nil)
	if err != nil {
		return err
	}
	asked := slices.Collect(o.asked(cluster.All()))
	if len(asked) == 0 {
		return ui.Bad("--shards %s: there are no such shards", &o.shards).Hint("firn shards ls")
	}
	return o.gather(ctx, cmd, asked, sql)
}

// openPools makes a pool for each server.
func openPools(ctx context.Context, servers []shard.Server, connections int) (map[string]*pgxpool.Pool, error) {
	pools := make(map[string]*pgxpool.Pool, len(servers))
	for _, s := range servers {
		config, err := pgxpool.ParseConfig("")
		if err == nil {
			config.ConnConfig, config.MaxConns = s.Config.Copy(), int32(connections)
			pools[s.Name], err = pgxpool.NewWithConfig(ctx, config)
		}
		if err != nil {
			delete(pools, s.Name)
			closePools(pools)
			return nil, err
		}
	}
	return pools, nil
}

func closePools(pools map[string]*pgxpool.Pool) {
	for _, p := range pools {
		p.Close()
	}
}

func (o *shardsExec) asked(all iter.Seq[shard.Shard]) iter.Seq[shard.Shard] {
	return func(yield func(shard.Shard) bool) {
		for s := range all {
			if o.shards.has(s.Number()) && !yield(s) {
				return
			}
		}
	}
}

// gather runs the statement on the shards, and prints what it gives.
func (o *shardsExec) gather(ctx context.Context, cmd *cobra.Command, asked []shard.Shard, sql string) error {
	options := shard.GatherOptions{AtOnce: len(asked), PerServer: o.perServer, GoOn: true}
	if !o.write {
		options.Tx.AccessMode = pgx.ReadOnly
	}
	var done atomic.Int64
	show := ui.ShowProgressOf("shards", true, cmd.ErrOrStderr(), int64(len(asked)), &done)
	// Its error joins those of the shards, which are told one by one.
	all, _ := shard.Gather(ctx, slices.Values(asked), &options, func(ctx context.Context, _ shard.Shard, tx pgx.Tx) (shardRows, error) {
		defer done.Add(1)
		return o.query(ctx, tx.Conn().PgConn(), sql)
	})
	show.Stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := newRowPrinter(cmd, o.csv)
	var cut []int64 // shards that have more rows
	failures, refused, several, away := 0, false, false, false
	for _, g := range all {
		if errors.Is(g.Err, errEnough) {
			g.Err = nil
		}
		if g.Value.cut && g.Err == nil {
			cut = append(cut, g.Shard.Number())
		}
		if g.Err == nil {
			g.Err = p.print(g.Shard.Number(), g.Value)
		} else if err := p.fault(g.Shard.Number(), g.Err); err != nil {
			return err
		}
		if g.Err != nil {
			failures++
			away = away || (&shard.ServerError{Err: g.Err}).Away()
			var pg *pgconn.PgError
			if errors.As(g.Err, &pg) {
				refused = refused || !o.write && pg.Code == "25006"
				several = several || strings.Contains(pg.Message, "multiple commands")
			}
			ui.PrintError(cmd.ErrOrStderr(), g.Err)
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	if failures == 0 {
		return o.sayCut(cmd, cut)
	}
	o.warnCut(cmd, cut)
	f := ui.Failed("%d of %s failed", failures, phrase.Plural(len(asked), "shard"))
	switch {
	case several:
		return f.Hint("give one statement at a time; to run files of several: firn shards apply DIR")
	case refused:
		return f.Hint("--write lets it write")
	case away:
		return f.Hint("start the server that does not answer, or check its address; to see which servers answer: firn shards status. Then run the same command again")
	}
	return f
}

// sayCut says of which shards not all rows were printed. It is an error where nobody has asked
// for fewer: who reads the rows would take them for all.
func (o *shardsExec) sayCut(cmd *cobra.Command, cut []int64) error {
	if len(cut) == 0 || o.write || cmd.Flags().Changed("limit") {
		o.warnCut(cmd, cut)
		return nil
	}
	return ui.Failed("the rows are incomplete: only the first %d of each shard were printed, and %s %s more: %s", o.limit, phrase.Plural(len(cut), "shard"), hasOrHave(len(cut)), move.List(cut)).
		Hint("for more rows of each shard: the same command with --limit N, or with --limit 0 for all")
}

// warnCut is sayCut where that is no error.
func (o *shardsExec) warnCut(cmd *cobra.Command, cut []int64) {
	if len(cut) > 0 {
		ui.PrintWarning(cmd.ErrOrStderr(), "%s %s more rows than --limit %d, which were not printed: %s", phrase.Plural(len(cut), "shard"), hasOrHave(len(cut)), o.limit, move.List(cut))
	}
}

func hasOrHave(n int) string {
	if n == 1 {
		return "has"
	}
	return "have"
}

// shardRows is what a statement gave on one shard.
type shardRows struct {
	fields []pgconn.FieldDescription // none: it has no rows
	rows   [][][]byte                // in PostgreSQL's text form; nil is NULL
	tag    string                    // such as UPDATE 3
	cut    bool                      // there are more rows
}

// errEnough breaks a statement off that gives more rows than are wanted.
var errEnough = errors.New("enough rows")

// query runs one statement; the server takes no second one with it.
func (o *shardsExec) query(ctx context.Context, c *pgconn.PgConn, sql string) (shardRows, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := c.ExecParams(ctx, sql, nil, nil, nil, nil)
	all := shardRows{fields: slices.Clone(r.FieldDescriptions())}
	for r.NextRow() {
		if o.limit == 0 || len(all.rows) < o.limit {
			all.rows = append(all.rows, cloneRow(r.Values()))
			continue
		}
		all.cut = true
		if !o.write { // what was written must not be lost with the rest
			cancel()
			r.Close()
			return all, errEnough
		}
	}
	tag, err := r.Close()
	all.tag = tag.String()
	return all, err
}

// cloneRow copies a row, whose memory is used again.
func cloneRow(row [][]byte) [][]byte {
	values := make([][]byte, len(row))
	for i, v := range row {
		values[i] = slices.Clone(v)
	}
	return values
}

// A rowPrinter prints the rows of shards one after the other.
type rowPrinter struct {
	json  *json.Encoder // or
	csv   *csv.Writer   // or
	table *tabwriter.Writer

	header []string
}

func newRowPrinter(cmd *cobra.Command, asCSV bool) *rowPrinter {
	out := cmd.OutOrStdout()
	switch {
	case wantsJSON(cmd):
		p := &rowPrinter{json: json.NewEncoder(out)}
		p.json.SetEscapeHTML(false)
		return p
	case asCSV:
		return &rowPrinter{csv: csv.NewWriter(out)}
	}
	return &rowPrinter{table: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
}

// print prints the rows of a shard. Its error is of the shard.
func (p *rowPrinter) print(number int64, s shardRows) error {
	if p.json != nil {
		return p.printJSON(number, s)
	}
	header := []string{"shard"}
	for _, f := range s.fields {
		header = append(header, p.text([]byte(f.Name)))
	}
	if len(s.fields) == 0 {
		header = append(header, "result")
		s.rows = [][][]byte{{[]byte(s.tag)}}
	}
	if p.header == nil {
		p.header = header
		if err := p.line(header); err != nil {
			return err
		}
	}
	if !slices.Equal(p.header, header) {
		return fmt.Errorf("shard %d has other columns, %s: --json prints them", number, strings.Join(header[1:], ", "))
	}
	for _, row := range s.rows {
		line := []string{strconv.FormatInt(number, 10)}
		for _, v := range row {
			line = append(line, p.text(v))
		}
		if err := p.line(line); err != nil {
			return err
		}
	}
	return nil
}

// text is a value as it stands in a table, where NULL is seen, or in CSV.
func (p *rowPrinter) text(v []byte) string {
	switch {
	case p.csv != nil:
		return string(v)
	case v == nil:
		return "NULL"
	}
	return printable(string(v))
}

// printable is a text in a table, without what would tear it, or would be a command to
// the terminal.
func printable(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func (p *rowPrinter) line(values []string) error {
	if p.csv != nil {
		return p.csv.Write(values)
	}
	_, err := fmt.Fprintln(p.table, strings.Join(values, "\t"))
	return err
}

// A rowLine is a row as --json prints it.
type rowLine struct {
	Shard  int64           `json:"shard"`
	Row    json.RawMessage `json:"row,omitempty"`
	Result string          `json:"result,omitempty"` // of what has no rows
	Error  *fileFault      `json:"error,omitempty"`
}

func (p *rowPrinter) printJSON(number int64, s shardRows) error {
	if len(s.fields) == 0 {
		return p.json.Encode(rowLine{Shard: number, Result: s.tag})
	}
	for _, row := range s.rows {
		object := []byte("{")
		for i, v := range row {
			if i > 0 {
				object = append(object, ',')
			}
			object = append(object, jsonText(s.fields[i].Name)...)
			object = append(append(object, ':'), jsonValue(s.fields[i].DataTypeOID, v)...)
		}
		if err := p.json.Encode(rowLine{Shard: number, Row: append(object, '}')}); err != nil {
			return err
		}
	}
	return nil
}

// jsonValue is a value in JSON. A bigint is a string: many readers take a number for a
// floating one, and give another id.
func jsonValue(oid uint32, v []byte) []byte {
	switch {
	case v == nil:
		return []byte("null")
	case oid == pgtype.BoolOID:
		return strconv.AppendBool(nil, v[0] == 't')
	case slices.Contains([]uint32{pgtype.Int2OID, pgtype.Int4OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.JSONOID, pgtype.JSONBOID}, oid) && json.Valid(v):
		return v
	}
	return jsonText(string(v))
}

func jsonText(s string) []byte {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// fault prints the error of a shard where that is data.
func (p *rowPrinter) fault(number int64, err error) error {
	if p.json == nil {
		return nil
	}
	return p.json.Encode(rowLine{Shard: number, Error: faultOf(err)})
}

func (p *rowPrinter) end() error {
	switch {
	case p.csv != nil:
		p.csv.Flush()
		return p.csv.Error()
	case p.table != nil:
		return p.table.Flush()
	}
	return nil
}
