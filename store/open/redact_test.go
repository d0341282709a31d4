package open_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/open"
)

func TestRedact(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://app@db/app":                      "postgres://app@db/app",
		"postgres://app:s3@db:5432/app?sslmode=off":  "postgres://app:xxxxx@db:5432/app?sslmode=off",
		"postgres://app:s/3@4?5@db/app":              "postgres://app:xxxxx@db/app",
		"postgres://db/app?user=a&password=s3&x=1":   "postgres://db/app?user=a&password=xxxxx",
		"postgres://db/app?p%61ssword=s3":            "postgres://db/app?p%61ssword=xxxxx",
		"postgres://db/app?password=a&s3":            "postgres://db/app?password=xxxxx",
		"postgres://app:s3":                          "postgres://app:xxxxx",
		"postgres://app:s3/app":                      "postgres://app:xxxxx/app",
		"postgres://db:5432,[::1]:5433/app":          "postgres://db:5432,[::1]:5433/app",
		"redis://:s3@h1:6379,h2:6379/0":              "redis://:xxxxx@h1:6379,h2:6379/0",
		"mysql:app:s3@tcp(db:3306)/app?authToken=s3": "mysql:xxxxx@tcp(db:3306)/app?authToken=xxxxx",
		"app:s3@tcp(db:3306)/app":                    "app:xxxxx@tcp(db:3306)/app",
		"host=db user=app password=s3 sslmode=off":   "host=db user=app password=xxxxx sslmode=off",
		`host=db password = 's3 \' s3' user=app`:     "host=db password = xxxxx user=app",
		"etcd://h1:2379,h2:2379/ids":                 "etcd://h1:2379,h2:2379/ids",
		"sqlite:/a:b@c.db":                           "sqlite:/a:b@c.db",
		"postgres://db:1/app?password=a@b":           "postgres://db:xxxxx",
		"memory:":                                    "memory:",
		"":                                           "",
	} {
		if got := open.Redact(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// schemes of stores with servers.
var schemes = []string{"zk", "zks", "etcd", "etcds", "mysql", "postgres", "redis", "rediss"}

// odd passwords have what a careless parser trips over.
var odd = []string{
	"hunter2", "hun@ter2", "hun:ter2", "hun/ter2", "hun?ter2", "hun#ter2", "hun&ter2=x", "hun ter2", "hun%ter2", "hun%zzter2", "%41hunter2",
	"hunter2@", "@hunter2", ":hunter2", "hunter2:", "hunter2/", "/hunter2", "//hunter2", "[hunter2", "hunter2]", "hun,ter2", "hun'ter2", `hun"ter2`,
	`hun\ter2`, "hun\nter2", "hun\x00ter2", "hun=ter2", "пароль-hunter2", "hunter2://hunter2", "?hunter2=hunter2", "a b=hunter2",
}

// However a password is written, right or wrong, no error of ours shows it.
func TestSecretsStaySecret(t *testing.T) {
	for _, scheme := range append(schemes, "oracle", "postgers") {
		for _, password := range odd {
			for _, form := range []string{
				"%s://app:P@127.0.0.1:1/x", "%s://app:P@127.0.0.1:nonsense/x", "%s://app:P@", "%s://:P@127.0.0.1:1/x?no_such=1", "%s://app:P@[::1/x",
				"%s://127.0.0.1:1/x?password=P", "%s://app:P@127.0.0.1:1/x?assume=maybe", "%s:app:P@tcp(127.0.0.1:1)/x", "%s://app:P@127.0.0.1:1/x?timeout=nonsense",
				"%s://app:P@127.0.0.1:1/x?sslmode=nonsense", "%s://app:P@127.0.0.1:1/../x",
			} {
				for _, written := range []string{password, url.PathEscape(password), url.QueryEscape(password)} {
					text := strings.ReplaceAll(strings.ReplaceAll(form, "%s", scheme), "P", written)
					s, err := open.URL(t.Context(), text)
					if err == nil {
						_, err = s.Get(cancelled(t), "k")
						s.Close()
					}
					if err == nil {
						t.Errorf("%s: no error", text)
						continue
					}
					// A password that begins with what ends a host may show its
					// rest as a part of the path; nothing more.
					for _, secret := range []string{"hunter2", "hun@ter2", "ter2"} {
						if strings.Contains(password, secret) && strings.Contains(err.Error(), secret) {
							t.Errorf("%s: %v", text, err)
							break
						}
					}
				}
			}
		}
	}
}

// A password written as it has to be is taken for what it is.
func TestOddPasswords(t *testing.T) {
	for _, scheme := range schemes {
		for _, password := range odd {
			for _, written := range []string{url.PathEscape(password), url.UserPassword("", password).String()[1:]} {
				if err := open.Check(scheme + "://app:" + written + "@127.0.0.1:1/1"); err != nil {
					t.Errorf("%s, %q: %v", scheme, password, err)
				}
			}
		}
	}
}

func TestURLErrorIs(t *testing.T) {
	var wrong *open.URLError
	if err := open.Check("zk://app:s3@h/x?assum=durable"); !errors.As(err, &wrong) || wrong.URL != "zk://app:xxxxx@h/x?assum=durable" ||
		wrong.Reason != `no option "assum"; is it assume?` {
		t.Errorf("%#v", err)
	}
}
