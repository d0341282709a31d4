package public

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
)

// A Key is a secret of 256 bits and its number, which opaque ids carry. Printing one
// in any way shows the number only; [Key.Secret] is for writing it down.
type Key struct {
	number int
	// In a function, into which nothing that prints values can look, even where the
	// Key is a field of something else.
	secret func() *[secretSize]byte
}

const (
	secretSize   = 32
	checksumSize = 4
	// maxKey is the highest number of a key. The lowest is 1.
	maxKey = 58
)

// keyPrefix is what the text of a key begins with, so that a person and a scanner
// for secrets see what it is. The number, ":" and the base64url of secret and
// checksum follow.
const keyPrefix = "firn-key-"

// NewKey makes a random key with a number from 1 to 58.
func NewKey(number int) (Key, error) {
	if err := checkNumber(number); err != nil {
		return Key{}, err
	}
	secret := new([secretSize]byte)
	rand.Read(secret[:]) // it never fails
	return makeKey(number, secret), nil
}

func makeKey(number int, secret *[secretSize]byte) Key {
	return Key{number, func() *[secretSize]byte { return secret }}
}

func checkNumber(number int) error {
	if number < 1 || number > maxKey {
		return fmt.Errorf("public: key %d: the number of a key is 1 to %d", number, maxKey)
	}
	return nil
}

// Number returns the number of the key, 0 of the zero Key.
func (k Key) Number() int { return k.number }

// Secret returns the text of the key as a key file has it, which [ParseKey] reads.
func (k Key) Secret() string {
	if k.secret == nil {
		return ""
	}
	sum := k.checksum()
	return keyPrefix + strconv.Itoa(k.number) + ":" +
		base64.RawURLEncoding.EncodeToString(slices.Concat(k.secret()[:], sum[:]))
}

// checksum tells a key that was copied in part from a wrong one.
func (k Key) checksum() [checksumSize]byte {
	h := sha256.New()
	h.Write([]byte(keyPrefix))
	h.Write([]byte{byte(k.number)})
	h.Write(k.secret()[:])
	return [checksumSize]byte(h.Sum(nil))
}

// String returns "key 1", and never the secret. So do Format and LogValue.
func (k Key) String() string {
	if k.secret == nil {
		return "no key"
	}
	return "key " + strconv.Itoa(k.number)
}

// Format writes what String returns, for any verb.
func (k Key) Format(f fmt.State, _ rune) { io.WriteString(f, k.String()) }

// LogValue returns what String returns.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText refuses: a key does not belong in the JSON of something else.
func (k Key) MarshalText() ([]byte, error) {
	return nil, errors.New("public: a key is not marshaled; Key.Secret is its text")
}

// ParseKey reads the text of a key. Its errors do not repeat it.
func ParseKey(text string) (Key, error) {
	fail := func(format string, args ...any) (Key, error) {
		return Key{}, fmt.Errorf("public: key: "+format, args...)
	}
	rest, ok := strings.CutPrefix(text, keyPrefix)
	if !ok {
		return fail("it does not begin with %s; firn public keygen makes one", keyPrefix)
	}
	digits, encoded, ok := strings.Cut(rest, ":")
	number, err := strconv.Atoi(digits)
	switch {
	case !ok:
		return fail("there is no colon after its number")
	case err != nil || strconv.Itoa(number) != digits || checkNumber(number) != nil:
		return fail("after %s there is its number, 1 to %d", keyPrefix, maxKey)
	}
	const size = secretSize + checksumSize
	want := base64.RawURLEncoding.EncodedLen(size)
	if len(encoded) != want {
		return fail("key %d has %d characters after the colon, not %d: was it copied as a whole?", number, want, len(encoded))
	}
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || len(b) != size { // which skips line ends
		return fail("key %d has a character that no key has: A-Z, a-z, 0-9, - and _ are those of a key", number)
	}
	k := makeKey(number, (*[secretSize]byte)(b))
	if k.checksum() != [checksumSize]byte(b[secretSize:]) {
		return fail("key %d is not whole: its checksum is wrong", number)
	}
	return k, nil
}

// ParseKeys reads keys, one a line or divided by spaces; what follows a # on its
// line is a comment. Their order is kept: the first writes, all read. An error says
// which line is wrong and repeats nothing of it.
func ParseKeys(text string) ([]Key, error) {
	var keys []Key
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		for word := range strings.FieldsSeq(line) {
			k, err := ParseKey(word)
			if err != nil {
				return nil, fmt.Errorf("public: line %d: %s", n, strings.TrimPrefix(err.Error(), "public: "))
			}
			keys = append(keys, k)
		}
	}
	return keys, checkKeys(keys)
}

// checkKeys says why keys cannot be those of one form.
func checkKeys(keys []Key) error {
	if len(keys) == 0 {
		return errors.New("public: there is no key")
	}
	for i, k := range keys {
		if k.secret == nil {
			return errors.New("public: the zero Key is not valid")
		}
		for _, other := range keys[:i] {
			switch {
			case k.number == other.number:
				return fmt.Errorf("public: key %d is there twice", k.number)
			case *k.secret() == *other.secret():
				return fmt.Errorf("public: key %d and key %d are the same secret", other.number, k.number)
			}
		}
	}
	return nil
}

// maxKeyFile is more than as many keys as there can be, with comments.
const maxKeyFile = 64 << 10

// LoadKeys reads the keys of a file, as [ParseKeys] does.
func LoadKeys(path string) ([]Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("public: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("public: %w", err)
	}
	if len(b) > maxKeyFile {
		return nil, fmt.Errorf("public: %s is longer than %d bytes: it is no key file", path, maxKeyFile)
	}
	keys, err := ParseKeys(string(b))
	if err != nil {
		return nil, fmt.Errorf("public: %s: %s", path, strings.TrimPrefix(err.Error(), "public: "))
	}
	return keys, nil
}

// derive returns the key of one use of k: no two forms use the same key, even if
// they are given the same.
func (k Key) derive(use string) [32]byte {
	b, err := hkdf.Key(sha256.New, k.secret()[:], nil, "firn public "+use+" 1", 32)
	if err != nil {
		panic(err) // only for a length that it cannot make
	}
	return [32]byte(b)
}

// seriesTag returns the 64 bits that an opaque id of that series and key has besides
// the id. Its label is part of the format.
func seriesTag(series string, number int) uint64 {
	sum := sha256.Sum256(append(append([]byte("firn token\x00"), byte(number)), series...))
	return binary.BigEndian.Uint64(sum[:])
}
