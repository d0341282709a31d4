package leaseoptions

import "testing"

func TestOrdinal(t *testing.T) {
	for host, want := range map[string]int64{
		"web-0": 0, "web-17": 17, "web-007": 7, "web-3.web.default.svc": 3, "ip-10-0-0-9": 9, "42": 42,
		"web": -1, "": -1, "web-3a": -1, "web3-": -1, "web-99999999999999999999": -1, "web.3": -1,
	} {
		got, err := ordinal(host)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", host, got, want)
		}
	}
}
