package document_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/store/memory"
)

// A program opens a series once, draws from it, and closes it when it ends.
func Example() {
	ctx := context.Background()
	// A program uses a store that stays, such as store/postgres, and no clock of its own.
	st := memory.NewClock(func() time.Time {
		return time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC)
	})

	// The step that creates the database does this, once; a program does not.
	_, err := document.Create(ctx, st, "invoice", &document.Options{
		Pattern: "INV-{yyyyMMdd}-{6}", Zone: "Asia/Ho_Chi_Minh",
	})
	if err != nil {
		log.Fatal(err)
	}

	invoices, err := document.Open(ctx, st, "invoice", nil) // the pattern is the store's
	if err != nil {
		log.Fatal(err)
	}
	defer invoices.Close()
	n, err := invoices.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n.Text, n.Period, n.Count)
	// Output:
	// INV-20261121-000001 20261121 1
}

// A pattern reads a text back, and says what is wrong with a mistyped one.
func ExamplePattern_Parse() {
	p, err := document.ParsePattern("INV-{yyyy}-{6}{luhn}")
	if err != nil {
		log.Fatal(err)
	}
	text := string(p.AppendText(nil, "2026", 42))
	n, err := p.Parse(text)
	fmt.Println(text, n.Count, err)

	_, err = p.Parse("INV-2026-0000241")
	fmt.Println(err)
	// Output:
	// INV-2026-0000425 42 <nil>
	// firn: document "INV-2026-0000241", column 16: the check {luhn} is wrong: something was mistyped
}
