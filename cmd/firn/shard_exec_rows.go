package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/phrase"
)

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
	return phrase.Printable(string(v))
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
