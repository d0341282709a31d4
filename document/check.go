package document

// A checkForm is a way to make check digits of a text.
type checkForm struct {
	name  string
	width int
	// of returns the check digits of text as a number.
	of func(text []byte) int
}

var checkForms = []checkForm{
	{"luhn", 1, luhn},
	{"mod97", 2, mod97},
}

// luhn is the check digit of ISO/IEC 7812-1 annex B. Only digits count. It finds
// every single wrong digit, and two neighbours exchanged except 09 and 90.
func luhn(text []byte) int {
	sum, double := 0, true
	for i := len(text) - 1; i >= 0; i-- {
		d := int(text[i]) - '0'
		if d < 0 || d > 9 {
			continue
		}
		if double {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
		double = !double
	}
	return (10 - sum%10) % 10
}

// mod97 are the check digits of ISO/IEC 7064 MOD 97-10, as in IBAN and LEI: with
// them the whole is 1 modulo 97. A letter, small or not, is 10 to 35, and
// everything else does not count.
func mod97(text []byte) int {
	rest := 0
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		case 'A' <= c && c <= 'Z':
			rest = (rest*100 + int(c-'A') + 10) % 97
		case 'a' <= c && c <= 'z':
			rest = (rest*100 + int(c-'a') + 10) % 97
		}
	}
	return 98 - rest*100%97
}
