package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/firn-id/firn/store"
)

// keysApart writes keys that something careless would take for one another.
func keysApart(c *check) {
	s := c.open()
	long := strings.Repeat("k", store.MaxKey-1)
	keys := []string{
		"photo", "Photo", "PHOTO", "photo/", "/photo", "photo.", "photo%", "photo_", "ph*to", "0", "00", "1e1", "10",
		long + "a", long + "b", long + "A", long, "../k", "k/../k", "k//k", "k/k", ".", "..", "/", "//", "true", "null",
	}
	for b := byte('!'); b <= '~'; b++ {
		if key := "c" + string(b); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	written := make(map[string]store.Record)
	for i, key := range keys {
		written[key] = c.put(s, key, fmt.Sprint(i), store.Condition{})
	}
	for _, key := range keys {
		c.is(s, written[key])
	}
	if l := c.list(s, ""); len(l) != len(keys) {
		c.Errorf("%d keys were written, %d are listed", len(keys), len(l))
	}
}

func badKeys(c *check) {
	s := c.open()
	for _, key := range []string{
		"", strings.Repeat("k", store.MaxKey+1), " ", "a b", "a ", " a", "a\tb", "a\n", "a\x00", "a\x7f", "\xff", "é", "a\u00a0",
	} {
		c.refused(s, key, []byte(`1`), fmt.Sprintf("the key %.20q (%d bytes)", key, len(key)))
		if r, err := s.Get(c.Context(), key); err == nil || r.Version != "" {
			c.Errorf("Get accepts the key %.20q (%d bytes)", key, len(key))
		}
	}
	if l := c.list(s, ""); len(l) != 0 {
		c.Errorf("bad keys are listed: %v", l)
	}
}

// valuesExact writes JSON that a store which understands it would tidy up.
func valuesExact(c *check) {
	s := c.open()
	var r store.Record
	for _, value := range []string{
		`{"b":1, "a":2}`, ` {"a" : 1}`, "{\"a\":1}\n", "\t[1,\r\n2]", `{"a":1,"a":2}`, `{}`, `[]`, `""`, `0`, `null`, `-0`, `1.0`,
		`1E400`, `9007199254740993`, `18446744073709551616`, `0.10`, `"é"`, `"e` + "\u0301" + `"`, `"\u00e9"`, `"😀"`, `"\ud83d\ude00"`,
		"\"\u2028\u00a0\"", `"\u0000"`, `"\/"`, `"'"`, `"\\'; DROP TABLE x; --"`, `"%s %d ?1 $1 :a @a {0}"`, `"\""`, "\"\x7f\"",
	} {
		if !json.Valid([]byte(value)) {
			panic("not JSON: " + value)
		}
		r = c.put(s, "k", value, store.Condition{Version: r.Version})
		c.is(s, r)
		if l := c.list(s, "k"); len(l) != 1 || string(l[0].Value) != value {
			c.Errorf("%q is listed as %v", value, l)
		}
	}
}

func valueSizes(c *check) {
	s := c.open()
	value := func(size int) string {
		return `"` + strings.Repeat("é", (size-2)/2) + strings.Repeat("x", size%2) + `"`
	}
	var r store.Record
	for _, size := range []int{2, 255, 256, 4095, 4096, 8193, 1<<15 - 1, 1 << 15, store.MaxValue - 1, store.MaxValue} {
		r = c.put(s, "k", value(size), store.Condition{Version: r.Version})
		c.is(s, r)
		c.is(s, c.put(s, fmt.Sprintf("k%d", size), value(size), store.Condition{}))
	}
	c.refused(s, "k", []byte(value(store.MaxValue+1)), "a value of one byte too many")
	c.refused(s, "none", []byte(value(store.MaxValue+1)), "a value of one byte too many")
	c.refused(s, "none", []byte(value(store.MaxValue*4)), "a value of four times too many bytes")
	c.is(s, r)
	if r := c.get(s, "none"); r.Version != "" {
		c.Errorf("a value of too many bytes was written: %s", show(r))
	}
}

// valuesOwned changes every slice after it changed hands.
func valuesOwned(c *check) {
	s := c.open()
	const value = `{"v":1}`
	mine := []byte(value)
	put, err := s.Put(c.Context(), "k", mine, store.Condition{})
	if err != nil {
		c.Fatalf("Put: %v", err)
	}
	copy(mine, "-------")
	if string(put.Value) != value {
		c.Errorf("the record that Put returned changes with what it was given: %s", show(put))
	}
	get := c.get(s, "k")
	list := c.list(s, "k")
	for _, slice := range [][]byte{mine, put.Value, get.Value, list[0].Value} {
		for i := range slice {
			slice[i] = 'x'
		}
		if r := c.get(s, "k"); string(r.Value) != value {
			c.Fatalf("changed from outside: %s", show(r))
		}
		if l := c.list(s, "k"); string(l[0].Value) != value {
			c.Fatalf("changed from outside: %v", l)
		}
	}
}

// listPrefixes lists prefixes that are patterns to something careless.
func listPrefixes(c *check) {
	s, other := c.open(), c.open()
	if l := c.list(s, ""); len(l) != 0 {
		c.Errorf("an empty store lists %v", l)
	}
	keys := []string{
		"a", "ab", "aXb", "AB", "A", "aab", "a%b", "a%", "a_b", "a_", "a*b", "a*", "a?b", "a[b]c", "a[", "a[^b]", "a.b", `a\b`, `a\`, `a\%`,
		"a'b", `a"b`, "a`b", "a-b", "a~b", "a~", "a~~", "a!", "~", "~~", "!", "a#b", "a{b}", "a|b", "a^b", "a$b", "a+b", "a,b", "a:b", "a;b",
		"a/b", "a/b/c", "a/", "a//", "A/b", "/a", "/", "b", "pool/1", "pool/10", "pool/2", "Pool/1", "pool", "pool0", strings.Repeat("a", store.MaxKey),
	}
	all := make(map[string]store.Record)
	for i, key := range keys {
		all[key] = c.put(s, key, fmt.Sprint(i), store.Condition{})
	}
	prefixes := []string{"", "%", "_", "*", "?", "[", "zzz", "a~~~", strings.Repeat("a", store.MaxKey+1)}
	for _, key := range keys {
		prefixes = append(prefixes, key, key[:len(key)-1])
	}
	for _, prefix := range prefixes {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		slices.Sort(want)
		for _, s := range []store.Store{s, other} {
			l := c.list(s, prefix)
			if got := keysOf(l); !slices.Equal(got, want) {
				c.Errorf("List %.40q: %.300q, not %.300q", prefix, got, want)
				continue
			}
			for _, r := range l {
				if !same(r, all[r.Key]) {
					c.Errorf("List %.40q: %s, not %s", prefix, show(r), show(all[r.Key]))
				}
			}
		}
	}
}

func keysOf(l []store.Record) []string {
	var keys []string
	for _, r := range l {
		keys = append(keys, r.Key)
	}
	return keys
}

// listOrder writes every byte a key may have, in an order that is nobody's.
func listOrder(c *check) {
	s := c.open()
	var want []string
	for i := range '~' - '!' + 1 {
		b := '!' + (i*37)%('~'-'!'+1)
		for _, key := range []string{string(b), "k" + string(b), "k" + string(b) + "k"} {
			c.put(s, key, `0`, store.Condition{})
			want = append(want, key)
		}
	}
	slices.Sort(want)
	if got := keysOf(c.list(s, "")); !slices.Equal(got, want) {
		c.Errorf("List: %q, not %q", got, want)
	}
}

// listMany writes more than a page of anything, in values of some size.
func listMany(c *check) {
	s := c.open()
	const n = 300
	value := `"` + strings.Repeat("x", 4000) + `"`
	for i := range n {
		c.put(s, fmt.Sprintf("many/%03d", i), value, store.Condition{})
	}
	c.put(s, "many0", `0`, store.Condition{})
	l := c.list(s, "many/")
	if len(l) != n {
		c.Fatalf("%d records were written, %d are listed", n, len(l))
	}
	for i, r := range l {
		if r.Key != fmt.Sprintf("many/%03d", i) || string(r.Value) != value {
			c.Errorf("record %d is %s", i, show(r))
		}
	}
}

func removed(c *check) {
	s, other := c.open(), c.open()
	r := c.put(s, "k", `1`, store.Condition{})
	c.is(other, r)
	c.backend.Remove(c.TB)
	later := c.open()
	for range 2 { // it stays so
		for _, s := range []store.Store{s, other, later} {
			_, get := s.Get(c.Context(), "k")
			_, none := s.Get(c.Context(), "none")
			_, put := s.Put(c.Context(), "k", []byte(`2`), store.Condition{Version: r.Version})
			_, create := s.Put(c.Context(), "none", []byte(`2`), store.Condition{})
			_, list := s.List(c.Context(), "")
			_, durability := s.Durability(c.Context())
			for _, err := range []error{get, none, put, create, list, durability} {
				var forgot *store.ForgotError
				if !errors.As(err, &forgot) {
					c.Errorf("the store was removed: %v, not a ForgotError", err)
				} else if forgot.Store == "" || forgot.What == "" {
					c.Errorf("which store, and what was seen? %+v", forgot)
				}
			}
		}
	}
}
