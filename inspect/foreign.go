package inspect

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Foreign reads the forms of id that are known by their shape: UUID, with its hyphens or without,
// ULID, ObjectId, and TID, as the AT Protocol has it. It returns false for any other text. UUIDs of
// version 1, 6 and 7 carry their time; the Reading of another version has none.
func Foreign(text string, into *Reading) (bool, error) {
	switch {
	case len(text) == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-':
		b, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		if err != nil || len(b) != 16 {
			return false, nil
		}
		return true, readUUID([16]byte(b), into)
	case len(text) == 32:
		b, err := hex.DecodeString(text)
		if err != nil || b[8]>>6 != 2 || b[6]>>4 < 1 || b[6]>>4 > 8 { // other 128 bits, as of a hash
			return false, nil
		}
		return true, readUUID([16]byte(b), into)
	case len(text) == 13:
		return readTID(text, into), nil
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
	case 2, 3, 4, 5, 8:
		into.Name = fmt.Sprintf("uuidv%d", version)
		return nil
	default:
		return errors.New("this UUID is of none of the versions that RFC 9562 describes")
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

// The time of a TID: no repository of the AT Protocol is older, and the other bound tells it from
// texts of the same length.
var (
	firstTID = date(2022).UnixMicro()
	lastTID  = date(2100).UnixMicro()
)

// readTID reads 64 bits in base 32: a zero, 53 bits of microseconds since 1970, and 10 that tell
// apart who makes them.
func readTID(text string, into *Reading) bool {
	const alphabet = "234567abcdefghijklmnopqrstuvwxyz"
	var n uint64
	for i := range len(text) {
		v := strings.IndexByte(alphabet, text[i])
		if v < 0 || i == 0 && v > 7 { // 63 bits
			return false
		}
		n = n<<5 | uint64(v)
	}
	at := int64(n >> 10)
	if at < firstTID || at >= lastTID {
		return false
	}
	*into = Reading{Name: "tid", decimals: 6, Fields: into.Fields[:0]}
	into.Time = time.UnixMicro(at).UTC()
	into.Fields = append(into.Fields, Field{Name: "clock", Number: int64(n & 0x3ff)})
	return true
}
