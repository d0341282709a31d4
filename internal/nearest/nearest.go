// Package nearest finds the name that somebody meant who has mistyped it.
package nearest

import "strings"

// A slip is a letter that is wrong, missing or too many, or two neighbours that have changed places.

// Name returns the name that word is with few slips, or whose end of up to two letters is missing; the first of
// those with fewest, or "". A name of eight letters or more has two slips at most, a shorter one has one: with two
// it is another word, as pool is of foo, or worker of order; so it is with one where the name has two letters.
func Name(word string, names []string) string {
	return closest(word, names, func(name string, d int) bool {
		return d == 0 || d == 1 && len(name) >= 3 || d == 2 && (len(name) >= 8 || strings.HasPrefix(name, word))
	})
}

// Misspelled returns the name that word is probably a misspelling of, or "". It is for words that may be meant as
// they are, where a misspelling does harm: there are two slips at most and one for three letters, and
// names that differ only in digits, such as user:1 and user:2, are all meant.
func Misspelled(word string, names []string) string {
	return closest(word, names, func(name string, d int) bool {
		return d <= 2 && d*3 <= len(name) && withoutDigits(word) != withoutDigits(name)
	})
}

// closest returns the first of the names that are near word with fewest slips, or "".
func closest(word string, names []string, near func(name string, slips int) bool) string {
	best, least := "", 0
	for _, name := range names {
		if d := distance(word, name); near(name, d) && (best == "" || d < least) {
			best, least = name, d
		}
	}
	return best
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// distance counts the slips between a and b, each at a place of its own.
func distance(a, b string) int {
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next[0] = i + 1
		for j := range len(b) {
			wrong := row[j]
			if a[i] != b[j] {
				wrong++
			}
			next[j+1] = min(wrong, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row, next = row, next, before
	}
	return row[len(b)]
}
