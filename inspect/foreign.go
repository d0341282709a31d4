package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Foreign reads the forms of id that are known by their shape and carry their time: UUIDs of
// version 1, 6 and 7, ULID, ObjectId. It returns false for any other text. A UUID without a
// time is one, and an error.
func Foreign(text string, into *Reading) (bool, error) {
	switch {
	case len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-':
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(b) != 16 {
			return false, nil
		}
		return true, readUUID([16]byte(b), into)
	case len(text) == 24:
		b, err := hex.DecodeString(text)
		if err != nil {
			return false, nil
		}
		readObjectID([12]byte(b), into)
		return true, nil
	case len(text) == 26:
		return readULID(text, into), nil
	}
	return false, nil
}

// readUUID reads RFC 9562. The fields of versions 1 and 6 have its names.
func readUUID(b [16]byte, into *Reading) error {
	const gregorian = -12219292800 // 1582-10-15 in Unix seconds
	var ticks int64                // of 100 ns
	high, mid, low := int64(binary.BigEndian.Uint32(b[0:])), int64(binary.BigEndian.Uint16(b[4:])), int64(binary.BigEndian.Uint16(b[6:]))
	version := b[6] >> 4
	if b[8]>>6 != 2 {
		return errors.New("this UUID is of none of the versions that RFC 9562 describes")
	}
	*into = Reading{Fields: into.Fields[:0]}
	switch version {
	case 1:
		into.Name, ticks = "uuidv1", low&0xfff<<48|mid<<32|high
	case 6:
		into.Name, ticks = "uuidv6", high<<28|mid<<12|low&0xfff
	case 7:
		into.Name, into.decimals = "uuidv7", 3
		into.Time = time.UnixMilli(high<<16 | mid).UTC()
		return nil
	default:
		return fmt.Errorf("a UUID of version %d carries no time", version)
	}
	into.decimals = 7
	into.Time = time.Unix(gregorian+ticks/1e7, ticks%1e7*100).UTC()
	into.Fields = append(into.Fields,
		Field{Name: "clock_seq", Number: int64(binary.BigEndian.Uint16(b[8:]) & 0x3fff)},
		Field{Name: "node", Text: hex.EncodeToString(b[10:])})
	return nil
}

// readObjectID reads the ids of MongoDB.
func readObjectID(b [12]byte, into *Reading) {
	*into = Reading{Name: "objectid", Fields: into.Fields[:0]}
	into.Time = time.Unix(int64(binary.BigEndian.Uint32(b[:])), 0).UTC()
	into.Fields = append(into.Fields,
		Field{Name: "random", Text: hex.EncodeToString(b[4:9])},
		Field{Name: "counter", Number: int64(b[9])<<16 | int64(b[10])<<8 | int64(b[11])})
}

// readULID reads Crockford's base 32, small letters too: ten letters of time, sixteen
// that are random.
func readULID(text string, into *Reading) bool {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var ms int64
	for i := range len(text) {
		c := text[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		v := strings.IndexByte(alphabet, c)
		if v < 0 || i == 0 && v > 7 { // 128 bits in 26 letters of 5
			return false
		}
		if i < 10 {
			ms = ms<<5 | int64(v)
		}
	}
	*into = Reading{Name: "ulid", decimals: 3, Fields: into.Fields[:0]}
	into.Time = time.UnixMilli(ms).UTC()
	return true
}
