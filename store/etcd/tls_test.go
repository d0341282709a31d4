package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// terminate puts TLS in front of a server, with a certificate for 127.0.0.1, and
// returns its address and who signed it.
func terminate(t *testing.T, target string) (addr string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(cert)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: k}},
		NextProtos:   []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { join(conn, target) })
		}
	})
	return l.Addr().String(), pool
}

// join passes what comes and goes, until one side ends.
func join(conn net.Conn, target string) {
	defer conn.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(conn, server)
		conn.Close()
	})
	io.Copy(server, conn)
	server.Close()
	back.Wait()
}

func TestCertificates(t *testing.T) {
	server := testserver.Shared(t, testserver.Etcd)
	secure, pool := terminate(t, server.Addr())
	for _, tt := range []struct {
		name, addr string
		tls        *tls.Config
		says       string
	}{
		{"right", secure, &tls.Config{RootCAs: pool}, ""},
		{"of nobody", secure, &tls.Config{}, "there is no secure connection"},
		{"of another", strings.Replace(secure, "127.0.0.1", "localhost", 1), &tls.Config{RootCAs: pool}, "there is no secure connection"},
		{"no TLS there", server.Addr(), &tls.Config{RootCAs: pool}, "there is no secure connection"},
		{"TLS there", secure, nil, "does etcd want TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(clientOf(t, clientv3.Config{Endpoints: []string{tt.addr}, TLS: tt.tls}), newPrefix())
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			r, err := s.Put(ctx, "k", []byte(`1`), store.Condition{})
			t.Log(err)
			switch {
			case tt.says == "" && err != nil:
				t.Error(err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says) || r.Version != ""):
				t.Errorf("%+v, %v; it should say %q", r, err, tt.says)
			}
		})
	}
}
