package testserver

import (
	"fmt"
	"os"
	"testing"
)

// Outside calls f, which starts servers as a test does, in a program that is no test:
// an example that wants some to show itself on. What f started ends with it. Nothing
// is installed; what is missing is an error.
func Outside(f func(tb testing.TB) error) (err error) {
	os.Setenv(envInstall, "0")
	o := &outside{}
	defer func() {
		for i := len(o.cleanups) - 1; i >= 0; i-- {
			o.cleanups[i]()
		}
	}()
	defer func() {
		switch v := recover().(type) {
		case nil:
		case outsideFailure:
			err = v
		default:
			panic(v)
		}
	}()
	return f(o)
}

// outside is a test that nobody runs, with what a server needs of one.
type outside struct {
	testing.T
	cleanups []func()
}

// An outsideFailure ends f, as a failure ends a test.
type outsideFailure struct{ text string }

func (e outsideFailure) Error() string { return e.text }

func (o *outside) Cleanup(f func())  { o.cleanups = append(o.cleanups, f) }
func (o *outside) Fatal(args ...any) { o.Fatalf("%s", fmt.Sprint(args...)) }
func (o *outside) Skipf(format string, args ...any) {
	o.Fatalf(format+"; make servers installs what is missing", args...)
}

func (o *outside) Fatalf(format string, args ...any) {
	panic(outsideFailure{fmt.Sprintf(format, args...)})
}
