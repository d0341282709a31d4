package open_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/open"
)

// certificate makes one that is its own authority, as two files.
func certificate(t *testing.T, name string) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, DNSNames: []string{name},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// inTLS takes TLS connections for a server that has none, from clients with a
// certificate of clientCA only.
func inTLS(t *testing.T, target, cert, key, clientCA string) (addr string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(clientCA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer out.Close()
				go func() { io.Copy(out, in); out.Close() }()
				io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().String()
}

// TLS: with the right authority, name and client certificate, and with none else.
func TestTLS(t *testing.T) {
	cert, key := certificate(t, "store.test")
	mine, myKey := certificate(t, "client.test")
	for scheme, start := range map[string]func(testing.TB, ...string) *testserver.Server{
		"rediss": testserver.Redis, "etcds": testserver.Etcd, "zks": testserver.ZooKeeper,
	} {
		t.Run(scheme, func(t *testing.T) {
			url := scheme + "://" + inTLS(t, testserver.Shared(t, start).Addr(), cert, key, mine) + "/1?"
			client := "&cert=" + mine + "&key=" + myKey
			for options, ok := range map[string]bool{
				"cacert=" + cert + "&servername=store.test" + client: true,
				"skip_verify=true" + client:                          true,
				"cacert=" + cert + client:                            false, // another name
				"cacert=" + cert + "&servername=other.test" + client: false,
				"servername=store.test" + client:                     false, // an unknown authority
				"cacert=" + cert + "&servername=store.test":          false, // no certificate of its own
			} {
				s, err := open.URL(t.Context(), url+options)
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.Put(t.Context(), "tls/"+string(store.NewVersion()), []byte(`1`), store.Condition{})
				if (err == nil) != ok {
					t.Errorf("%s: %v", options, err)
				}
				s.Close()
			}
			for options, want := range map[string]string{
				"cacert=/no/such/file": "no such file", "cert=" + mine: "cert and key go together", "cacert=" + myKey: "there is no certificate in it",
			} {
				if s, err := open.URL(t.Context(), url+options); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v", options, err)
					if err == nil {
						s.Close()
					}
				}
			}
		})
	}
	if err := open.Check("redis://h/1?cacert=x"); err == nil || !strings.Contains(err.Error(), "begin the URL with rediss://") {
		t.Error(err)
	}
}
