// Package nearest finds the name that somebody meant who has mistyped it.
package nearest

import "strings"

// slips is how many letters may be wrong, missing or too many.
const slips = 2

// Name returns the name that is word with at most two slips, the first of those
// with fewest, or "". A name of which no letter would be right is none.
func Name(word string, names []string) string {
	best, least := "", slips+1
	for _, name := range names {
		if d := distance(word, name); d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// Misspelled returns the name that word is probably a misspelling of, or "". Unlike [Name] it
// is for words that may be meant as they are: there is at most one slip for three letters, and
// names that differ only in digits, such as user:1 and user:2, are all meant.
func Misspelled(word string, names []string) string {
	var near []string
	for _, name := range names {
		if distance(word, name)*3 <= len(name) && withoutDigits(word) != withoutDigits(name) {
			near = append(near, name)
		}
	}
	return Name(word, near)
}

func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}

// distance counts the letters to insert, remove or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
