package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/shortfile"
)

// A keyring is the server's certificate and the authority of its clients, which can
// be replaced while connections go on.
type keyring struct{ now atomic.Pointer[tls.Config] }

// load reads the files. On an error the ring is as it was.
func (k *keyring) load(o *config.ServerOptions) error {
	if o.Cert == "" {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return wrongSettings(fmt.Sprintf("tls: %s and %s: %s", o.Cert, o.Key, err),
			fmt.Sprintf("openssl x509 -noout -text -in %s shows what is in it", phrase.ShellWord(o.Cert)))
	}
	if now := time.Now(); now.After(pair.Leaf.NotAfter) {
		return wrongSettings(fmt.Sprintf("tls: %s has ended at %s", o.Cert, pair.Leaf.NotAfter.Format(time.RFC3339)),
			"get a new certificate, then start again, or reload with SIGHUP")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if o.ClientCA != "" {
		if c.ClientCAs, err = authority(o.ClientCA); err != nil {
			return err
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	k.now.Store(c)
	return nil
}

// authority reads the certificates that those of clients are signed with.
func authority(path string) (*x509.CertPool, error) {
	pem, err := shortfile.Read(path)
	if err != nil {
		return nil, wrongSettings("tls: client-ca: " + err.Error())
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, wrongSettings("tls: client-ca: there is no certificate in " + path)
	}
	return pool, nil
}

// on reports whether there is a certificate.
func (k *keyring) on() bool { return k.now.Load() != nil }

// config is what a listener uses: each new connection gets what the ring holds then.
func (k *keyring) config(protocols ...string) *tls.Config {
	var last atomic.Pointer[madeConfig]
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := k.now.Load()
			if now == nil {
				return nil, errors.New("no certificate")
			}
			made := last.Load()
			if made == nil || made.of != now {
				// One for all connections: it keeps the keys of session tickets.
				c := now.Clone()
				c.NextProtos = protocols
				made = &madeConfig{now, c}
				last.Store(made)
			}
			return made.config, nil
		},
	}
}

type madeConfig struct{ of, config *tls.Config }

// ends tells when the certificate ends, for a person.
func (k *keyring) ends() string {
	c := k.now.Load()
	return fmt.Sprintf("%s, until %s", c.Certificates[0].Leaf.Subject, c.Certificates[0].Leaf.NotAfter.Format(time.DateOnly))
}
