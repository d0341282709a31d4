package inspect

import "github.com/firn-id/firn"

// usedBy names systems that a reader may know better than the preset their ids have.
var usedBy = map[string]string{"leaf": "bwmarrin/snowflake"}

// sameBits returns the decoder of the preset that reads the same times and sequences from an id as l, and
// divides the bits of the worker in another way. Nil means that no layout does.
func sameBits(l firn.Layout) *Decoder {
	if _, shards := l.Field("shard"); shards {
		return nil
	}
	for _, other := range firn.Presets() {
		if other != l && other.Epoch().Equal(l.Epoch()) && other.Unit() == l.Unit() && other.Workers() == l.Workers() &&
			sameField(l, other, "time") && sameField(l, other, "seq") {
			return NewDecoder(other)
		}
	}
	return nil
}

func sameField(a, b firn.Layout, name string) bool {
	x, inA := a.Field(name)
	y, inB := b.Field(name)
	return inA && inB && x == y
}

// SameBits is the preset that reads the bits of a guess with the same time and sequence, and divides those of
// the worker in another way, with what it reads: "leaf", "leaf (bwmarrin/snowflake): worker=37". Both are ""
// where there is no such preset, and of an id whose layout is known.
func (r *Reading) SameBits() (layout, text string) {
	if r.same == nil {
		return "", ""
	}
	return r.same.name, string(r.appendSameBits(nil))
}

func (r *Reading) appendSameBits(dst []byte) []byte {
	dst = append(dst, r.same.name...)
	if system := usedBy[r.same.name]; system != "" {
		dst = append(append(append(dst, " ("...), system...), ')')
	}
	dst = append(dst, ':')
	for _, f := range r.same.fields {
		if f.Name != "seq" {
			dst = append(append(append(dst, ' '), f.Name...), '=')
			dst = Field{Number: f.Of(r.id)}.appendValue(dst)
		}
	}
	return dst
}
