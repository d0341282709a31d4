package main

import (
	"github.com/bwmarrin/snowflake"
	"github.com/google/uuid"
	"github.com/speps/go-hashids/v2"
	"github.com/sqids/sqids-go"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

const (
	written = "public forms, written"
	read    = "public forms, read"
)

// forms writes ids as outsiders see them, and reads them. firn's are appended to a
// buffer that is there; the others return a new string.
func forms() ([]contender, error) {
	hashed, err := hashids.New()
	if err != nil {
		return nil, err
	}
	squid, err := sqids.New()
	if err != nil {
		return nil, err
	}
	ours, err := ourForms()
	if err != nil {
		return nil, err
	}
	const made = 1024
	g := generator(wide)
	var ids [made]firn.ID
	for i := range ids {
		if ids[i], err = g.Next(ctx); err != nil {
			return nil, err
		}
	}
	buf := make([]byte, 0, 64)
	row := func(name string, part int, do func(i int)) contender {
		return contender{name: name, part: part, make: func(n int) {
			for i := range n {
				do(i % made)
			}
		}}
	}
	write := []contender{
		row("bwmarrin Base58", 0, func(i int) { sink.text = snowflake.ID(ids[i]).Base58() }),
		row("uuid String", 0, func(i int) { sink.text = uuid.UUID{byte(i)}.String() }),
		row("sqids Encode", 16, func(i int) { sink.text, _ = squid.Encode([]uint64{uint64(ids[i])}) }),
		row("hashids EncodeInt64", 4, func(i int) { sink.text, _ = hashed.EncodeInt64([]int64{int64(ids[i])}) }),
	}
	parse := []contender{
		parsing(row, "bwmarrin ParseBase58", 0, ids[:], func(id firn.ID) string { return snowflake.ID(id).Base58() },
			func(text string) { id, _ := snowflake.ParseBase58([]byte(text)); sink.number = int64(id) }),
		parsing(row, "sqids Decode", 4, ids[:], func(id firn.ID) string { text, _ := squid.Encode([]uint64{uint64(id)}); return text },
			func(text string) { sink.number = int64(len(squid.Decode(text))) }),
		parsing(row, "hashids DecodeInt64", 8, ids[:], func(id firn.ID) string { text, _ := hashed.EncodeInt64([]int64{int64(id)}); return text },
			func(text string) { n, _ := hashed.DecodeInt64WithError(text); sink.number = int64(len(n)) }),
	}
	for _, o := range ours {
		write = append(write, row("firn "+o.name, 0, func(i int) { buf, _ = o.form.Append(buf[:0], ids[i]) }))
		parse = append(parse, parsing(row, "firn "+o.name+" Parse", 0, ids[:],
			func(id firn.ID) string { text, _ := o.form.Append(nil, id); return string(text) },
			func(text string) { id, _ := o.form.Parse(text); sink.number = int64(id) }))
	}
	write[0].role, parse[0].role = peer, peer
	return append(in(written, write), in(read, parse)...), nil
}

type named struct {
	name string
	form public.Form
}

func ourForms() ([]named, error) {
	key, err := public.NewKey(1)
	if err != nil {
		return nil, err
	}
	cipher, err := public.NewCipher("photo", key, nil)
	if err != nil {
		return nil, err
	}
	token, err := public.NewOpaque("photo", []public.Key{key}, &public.OpaqueOptions{Prefix: "photo"})
	if err != nil {
		return nil, err
	}
	return []named{
		{"hex", public.Hex},
		{"crockford", public.Crockford},
		{"base58", public.Base58},
		{"base62", public.Base62},
		{"base64url", public.Base64URL},
		{"reversed", public.Reversed{}},
		{"cipher", cipher},
		{"token", token},
	}, nil
}

// parsing reads the texts that write makes of ids.
func parsing(row func(string, int, func(int)) contender, name string, part int, ids []firn.ID,
	write func(firn.ID) string, read func(string),
) contender {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = write(id)
	}
	return row(name, part, func(i int) { read(texts[i]) })
}
