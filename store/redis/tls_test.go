package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
)

// certificate makes one for a name, signed by itself, and returns its files.
func certificate(t *testing.T, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	// The server may run under another account.
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pool
}

// TestLogin has wrong passwords and wrong certificates.
func TestLogin(t *testing.T) {
	server := testserver.Redis(t)
	admin := client(t, server.Addr())
	cert, key, pool := certificate(t, "redis.test")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	secure := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	do(t, admin, "CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", cert, "tls-auth-clients", "no", "tls-port", port)
	do(t, admin, "ACL", "SETUSER", "app", "on", ">right", "~*", "+@all")

	for _, tt := range []struct {
		name, says string
		opts       goredis.Options
	}{
		{"right", "", goredis.Options{Addr: server.Addr(), Username: "app", Password: "right"}},
		{"password", "refuses the user or the password", goredis.Options{Addr: server.Addr(), Username: "app", Password: "wrong"}},
		{"user", "refuses the user or the password", goredis.Options{Addr: server.Addr(), Username: "nobody", Password: "right"}},
		{"certificate right", "", goredis.Options{Addr: secure, TLSConfig: &tls.Config{RootCAs: pool, ServerName: "redis.test"}}},
		{"certificate of nobody", "certificate is not accepted", goredis.Options{Addr: secure, TLSConfig: &tls.Config{ServerName: "redis.test"}}},
		{"certificate of another", "certificate is not accepted", goredis.Options{Addr: secure, TLSConfig: &tls.Config{RootCAs: pool, ServerName: "other.test"}}},
		{"no TLS there", "not answered in time", goredis.Options{Addr: server.Addr(), DialTimeout: 200 * time.Millisecond, TLSConfig: &tls.Config{RootCAs: pool, ServerName: "redis.test"}}},
		{"TLS there", "If it wants TLS", goredis.Options{Addr: secure}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := goredis.NewClient(&tt.opts)
			defer c.Close()
			_, err := New(c, newKey()).Put(t.Context(), "k", []byte(`1`), store.Condition{})
			t.Log(err)
			if strings.HasSuffix(tt.name, "right") {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v; it should say %q", err, tt.says)
			}
			if strings.Contains(err.Error(), "wrong") {
				t.Errorf("%v shows the password", err)
			}
		})
	}
}
