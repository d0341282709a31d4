//go:build !windows

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// An authority makes the certificates of a test.
type testAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *testAuthority {
	t.Helper()
	a := &testAuthority{pool: x509.NewCertPool()}
	a.cert, a.key = a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(99), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.pool.AddCert(a.cert)
	return a
}

// sign makes a certificate with a key of its own; the authority's own signs itself.
func (a *testAuthority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, with := a.cert, a.key
	if parent == nil {
		parent, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), with)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key
}

// issue writes NAME.pem and NAME.key, for this host.
func (a *testAuthority) issue(t *testing.T, dir, name string, document int64) {
	t.Helper()
	a.issueUntil(t, dir, name, document, time.Now().Add(time.Hour))
}

func (a *testAuthority) issueUntil(t *testing.T, dir, name string, document int64, end time.Time) {
	t.Helper()
	c, key := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(document), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: end,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, name+".key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	write(t, dir, name+".pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})))
}

// write writes the authority's certificate.
func (a *testAuthority) write(t *testing.T, dir, name string) {
	t.Helper()
	write(t, dir, name, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})))
}
