//go:build linux

package siege

import "testing"

func TestOverlayIsLoud(t *testing.T) {
	for _, src := range []string{
		"",
		"package time\n\nfunc Now() Time {\n\tsec, nsec, mono := now()\n}\n",
		"package time\n\nfunc Now() Time {\n" + anchor + "}\n\nfunc Then() Time {\n" + anchor + "}\n",
		"package time\n\nfunc Then() Time {\n" + anchor + "}\n\nfunc Now() Time {\n}\n",
	} {
		if _, err := grafted(src); err == nil {
			t.Errorf("a package time with nowhere to put the shift was accepted:\n%s", src)
		}
	}
}
