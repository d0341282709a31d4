package open

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/firn-id/firn/internal/shortfile"
)

// tlsOptions are those of the command-line tools of Redis and etcd.
var tlsOptions = []string{"cacert", "cert", "key", "servername", "skip_verify"}

// A tlsFiles is what the options say about TLS.
type tlsFiles struct {
	on                   bool
	ca, cert, key, name  string
	anyCertificateIsGood bool
}

// takeTLS takes the options. on: the scheme asks for TLS.
func (a *address) takeTLS(on bool, plain string) (t tlsFiles, err error) {
	t.on = on
	given := ""
	for name, into := range map[string]*string{"cacert": &t.ca, "cert": &t.cert, "key": &t.key, "servername": &t.name} {
		value, ok := a.take(name)
		if *into = value; ok {
			given = name
		}
	}
	if _, ok := a.options["skip_verify"]; ok {
		given = "skip_verify"
	}
	if t.anyCertificateIsGood, err = a.flag("skip_verify"); err != nil {
		return t, err
	}
	switch {
	case given != "" && !on:
		return t, fmt.Errorf("option %s is for TLS: begin the URL with %s://", given, plain+"s")
	case (t.cert == "") != (t.key == ""):
		return t, errors.New("options cert and key go together")
	}
	return t, nil
}

// config reads the files. It is nil without TLS.
func (t tlsFiles) config() (*tls.Config, error) {
	if !t.on {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.name, InsecureSkipVerify: t.anyCertificateIsGood}
	if t.ca != "" {
		pem, err := shortfile.Read(t.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: there is no certificate in it", t.ca)
		}
	}
	if t.cert != "" {
		pair, err := tls.LoadX509KeyPair(t.cert, t.key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// verifyName makes the server's certificate be of c.ServerName for a client that
// puts the host's name in its place.
func verifyName(c *tls.Config) {
	if c == nil || c.ServerName == "" || c.InsecureSkipVerify {
		return
	}
	roots, name := c.RootCAs, c.ServerName
	c.InsecureSkipVerify = true // what verifies instead:
	c.VerifyConnection = func(state tls.ConnectionState) error {
		o := x509.VerifyOptions{Roots: roots, DNSName: name, Intermediates: x509.NewCertPool()}
		for _, cert := range state.PeerCertificates[1:] {
			o.Intermediates.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(o)
		return err
	}
}
