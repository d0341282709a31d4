package open_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/config/open"
)

func Example() {
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "firn.yaml")
	const text = `store: sqlite:ids.db
series:
  photo: { kind: flake }
  video: { kind: flake }
  orders: { kind: sequence, first: 1000 }
  invoice: { kind: document, pattern: "INV-{4}" }
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}

	cfg, err := config.Load(path)
	if err != nil {
		log.Fatal(err)
	}
	app := open.Config(cfg, nil)
	defer app.Close()

	ctx := context.Background()
	photos, err := app.Source(ctx, "photo")
	if err != nil {
		log.Fatal(err)
	}
	videos, err := app.Source(ctx, "video")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("one lease for both:", photos == videos)
	orders, err := app.Source(ctx, "orders")
	if err != nil {
		log.Fatal(err)
	}
	order, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	invoices, err := app.Document(ctx, "invoice")
	if err != nil {
		log.Fatal(err)
	}
	invoice, err := invoices.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order, invoice.Text)
	// Output:
	// one lease for both: true
	// 1000 INV-0001
}
