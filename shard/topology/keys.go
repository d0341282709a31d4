package topology

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The key schemes: how the shard of a key follows from the key. Which one a cluster
// has is decided when it is made, and never changes, but that ranges may be added at the end.
const (
	// Hash spreads any text: the first 52 bits of its SHA-256, modulo the number of
	// shards. In every language that is
	//
	//	int(sha256(key).hexdigest()[:13], 16) % shards
	Hash = "hash"

	// Mod is for keys that are numbers: the key modulo the number of shards.
	Mod = "mod"

	// Range is for keys that are numbers: each shard has a lower bound, and the keys
	// from there to the next one's.
	Range = "range"

	// None leaves it to the program, which asks for shards by number.
	None = "none"
)

// Keys say which shard a key belongs to. The zero value belongs to no cluster.
type Keys struct {
	scheme string
	shards int64
	bounds []int64 // of Range: the lower bound of each shard, rising
}

// ParseKeys reads a key scheme for a number of shards: "hash", "mod", "none", or
// "range:1,1001,2001" with the lower bound of each shard, of which there are as many as bounds where shards is 0.
func ParseKeys(text string, shards int64) (Keys, error) {
	if shards == 0 && strings.HasPrefix(text, Range+":") {
		shards = int64(strings.Count(text, ",")) + 1
	}
	if shards < 1 {
		return Keys{}, fmt.Errorf("shard: %d shards: there is at least one", shards)
	}
	scheme, rest, listed := strings.Cut(text, ":")
	k := Keys{scheme: scheme, shards: shards}
	switch scheme {
	case Hash, Mod, None:
		if listed {
			return Keys{}, fmt.Errorf("shard: key scheme %q: %s has no bounds", text, scheme)
		}
		return k, nil
	case Range:
		if !listed {
			return Keys{}, fmt.Errorf("shard: key scheme %q: the lower bounds of the shards are missing, as in range:1,1001,2001", text)
		}
	default:
		return Keys{}, fmt.Errorf("shard: key scheme %q: it is hash, mod, none, or range:1,1001,2001", text)
	}
	for bound := range strings.SplitSeq(rest, ",") {
		n, err := parseNumber(bound)
		if err != nil {
			return Keys{}, fmt.Errorf("shard: key scheme range: bound %q: %w", bound, err)
		}
		if last := len(k.bounds) - 1; last >= 0 && n <= k.bounds[last] {
			return Keys{}, fmt.Errorf("shard: key scheme range: bound %d after %d: they rise", n, k.bounds[last])
		}
		k.bounds = append(k.bounds, n)
	}
	if int64(len(k.bounds)) != shards {
		return Keys{}, fmt.Errorf("shard: key scheme range: %d bounds for %d shards: each has one", len(k.bounds), shards)
	}
	return k, nil
}

// String returns what [ParseKeys] reads.
func (k Keys) String() string {
	if k.scheme != Range {
		return k.scheme
	}
	bounds := make([]string, len(k.bounds))
	for i, b := range k.bounds {
		bounds[i] = strconv.FormatInt(b, 10)
	}
	return Range + ":" + strings.Join(bounds, ",")
}

// Extends reports whether k has all ranges of other, and further ones above them.
func (k Keys) Extends(other Keys) bool {
	n := len(other.bounds)
	return k.scheme == Range && other.scheme == Range && n < len(k.bounds) && slices.Equal(k.bounds[:n], other.bounds)
}

// Scheme returns "hash", "mod", "range" or "none".
func (k Keys) Scheme() string { return k.scheme }

// Shards returns how many shards there are. They are numbered from 0.
func (k Keys) Shards() int64 { return k.shards }

// Bounds returns the lower bounds of the shards, where the scheme is range.
func (k Keys) Bounds() []int64 { return slices.Clone(k.bounds) }

// Shard returns the shard of a key. With mod and range a key is a number from 0 on, in decimal. The error is
// a [*KeyError].
func (k Keys) Shard(key string) (int64, error) {
	switch k.scheme {
	case Hash:
		sum := sha256.Sum256([]byte(key))
		return int64(binary.BigEndian.Uint64(sum[:]) >> 12 % uint64(k.shards)), nil
	case Mod, Range:
		n, err := parseNumber(key)
		if err != nil {
			return 0, &KeyError{key, k.scheme, err.Error()}
		}
		return k.ofNumber(n)
	default:
		return 0, &KeyError{key, None, "the cluster has no key scheme: the program knows the shard"}
	}
}

// ofNumber is the shard of a number in a scheme of numbers.
func (k Keys) ofNumber(n int64) (int64, error) {
	if k.scheme == Mod {
		return n % k.shards, nil
	}
	i, found := slices.BinarySearch(k.bounds, n)
	if !found {
		i--
	}
	if i < 0 {
		return 0, &KeyError{strconv.FormatInt(n, 10), k.scheme, fmt.Sprintf("the first shard begins at %d", k.bounds[0])}
	}
	return int64(i), nil
}

// A KeyError says why a key has no shard.
type KeyError struct {
	Key, Scheme string
	Why         string
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("shard: key %q (%s): %s", e.Key, e.Scheme, e.Why)
}

// parseNumber reads a number from 0 on that is written in one way only.
func parseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("it is not a number from 0 to 9223372036854775807")
	}
	return n, nil
}
