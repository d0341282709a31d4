package install

import (
	_ "embed"
	"io"
	"sync"
	"text/template"

	"github.com/firn-id/firn"
)

var (
	//go:embed catalog.sql
	catalogSQL string
	//go:embed others.sql
	othersSQL string
	//go:embed owner.sql
	ownerSQL string
	//go:embed stream.sql
	streamSQL string
)

var movesTemplate = sync.OnceValue(parseMoves)

func parseMoves() *template.Template {
	return template.Must(template.New("moves").Parse(catalogSQL + "\n" + othersSQL + "\n" + ownerSQL + "\n" + streamSQL))
}

// WriteMoves writes the SQL that lets shards move from and to a database that has that
// of [WriteGenerator] for the same layout. It may be run again.
func WriteMoves(w io.Writer, l firn.Layout) error {
	g, err := newGenerator(l)
	if err != nil {
		return err
	}
	return movesTemplate().Execute(w, g)
}
