package main

import "testing"

func TestByteSize(t *testing.T) {
	for text, want := range map[string]int64{"1000": 1000, "7B": 7, "512MB": 512e6, "10GB": 10e9, "10 GB": 10e9, "1TB": 1e12, "2kB": 2000} {
		if n := byteSize(0); n.Set(text) != nil || int64(n) != want {
			t.Errorf("%s is %d, want %d", text, n, want)
		}
	}
	for _, text := range []string{"", "0", "-1GB", "GB", "10 apples", "1.5GB", "9999999TB", "10GiB"} {
		if n := byteSize(0); n.Set(text) == nil {
			t.Errorf("%q is %d", text, n)
		}
	}
}
