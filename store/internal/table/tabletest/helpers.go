package tabletest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// Connect opens a database as a program would, and closes it with the test.
func Connect(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	tb.Cleanup(func() { db.Close() })
	return db
}

// Do runs statements.
func Do(tb testing.TB, db *sql.DB, queries ...string) {
	tb.Helper()
	for _, q := range queries {
		if _, err := db.ExecContext(context.WithoutCancel(tb.Context()), q); err != nil {
			tb.Fatalf("%s: %v", q, err)
		}
	}
}

// To2 is what an Update writes whatever it is given.
func To2(store.Record) ([]byte, error) { return []byte(`2`), nil }

// MustPut is a Put that succeeds.
func MustPut(tb testing.TB, s store.Store, key, value string, cond store.Condition) store.Record {
	tb.Helper()
	r, err := s.Put(tb.Context(), key, []byte(value), cond)
	if err != nil {
		tb.Fatalf("Put %s: %v", key, err)
	}
	return r
}

// Durability is what the store says of itself.
func Durability(tb testing.TB, s store.Store) store.Durability {
	tb.Helper()
	d, err := s.Durability(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// Becomes waits until the store is durable or not, for a reason.
func Becomes(tb testing.TB, s store.Store, durable bool, want string) {
	tb.Helper()
	var d store.Durability
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if d = Durability(tb, s); d.Durable == durable && strings.Contains(d.Why, want) {
			return
		}
	}
	tb.Errorf("%v: %s: not durable=%t, %q", d, d.Why, durable, want)
}

// Works requires that a store reads and writes, within a minute.
func Works(tb testing.TB, s store.Store) {
	tb.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = Use(tb, s); err == nil {
			return
		}
	}
	tb.Fatalf("a minute later: %v", err)
}

// Use reads and writes once.
func Use(tb testing.TB, s store.Store) error {
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Second)
	defer cancel()
	r, err := s.Get(ctx, "k")
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, "k", []byte(`1`), store.Condition{Version: r.Version})
	return err
}

// Fails requires of all methods an error that says what is the matter, and is
// neither a success nor a conflict. put is what the Put returned.
func Fails(tb testing.TB, s store.Store, cond store.Condition, want ...string) (put store.Record) {
	tb.Helper()
	for what, call := range map[string]func(context.Context) error{
		"Get":        func(ctx context.Context) error { _, err := s.Get(ctx, "k"); return err },
		"List":       func(ctx context.Context) error { _, err := s.List(ctx, ""); return err },
		"Durability": func(ctx context.Context) error { _, err := s.Durability(ctx); return err },
		"Put":        func(ctx context.Context) (err error) { put, err = s.Put(ctx, "k", []byte(`2`), cond); return err },
	} {
		long := time.Minute
		if slices.Contains(want, "not answered in time") {
			long = time.Second
		}
		ctx, cancel := context.WithTimeout(tb.Context(), long)
		Says(tb, what, call(ctx), want...)
		cancel()
	}
	return put
}

// Says requires an error that is no conflict and says one of want.
func Says(tb testing.TB, what string, err error, want ...string) {
	tb.Helper()
	if err == nil || errors.Is(err, store.ErrConflict) {
		tb.Errorf("%s: %v", what, err)
		return
	}
	for _, w := range want {
		if strings.Contains(err.Error(), w) {
			return
		}
	}
	tb.Errorf("%s: %v: does not say %q", what, err, want)
}

// Shaky starts a proxy to addr that loses requests and replies. Direct leads to the same
// server without it.
func Shaky(tb testing.TB, addr string, direct *sql.DB) *testserver.Proxy {
	p := testserver.NewProxy(tb, addr)
	// It lets as much time pass as a login takes now, or some times that: a machine
	// may be so busy that nothing would ever come through.
	direct.SetMaxIdleConns(0)
	ctx, end := context.WithCancel(context.WithoutCancel(tb.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			start := time.Now()
			direct.PingContext(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(rand.N(3*time.Since(start) + 1)):
			}
			switch rand.N(3) {
			case 0:
				p.LoseRequests(1)
			case 1:
				p.LoseReplies(1)
			case 2:
				p.Cut()
			}
		}
	}()
	tb.Cleanup(func() { end(); <-ended })
	return p
}

// Certificate makes one that signs itself, for a host that is not the one it is
// used on.
func Certificate(tb testing.TB) (cert, key []byte) {
	tb.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "db.example"}, DNSNames: []string{"db.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		tb.Fatal(err)
	}
	pkcs, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs})
}
