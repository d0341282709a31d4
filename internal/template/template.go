// Package template has the rule by which a name belongs to a template of documents. The template
// bill:* gives each name that begins with "bill:" a counter of its own. It begins with a letter or digit and
// ends with a separator and a star, so a name can belong to few templates, which are looked up one by one.
package template

import "strings"

// separators are what stands before the star.
const separators = "_.-:"

// Is reports whether a name is that of a template.
func Is(name string) bool {
	prefix, ok := strings.CutSuffix(name, "*")
	return ok && len(prefix) > 1 && isSeparator(prefix[len(prefix)-1]) && !isSeparator(prefix[0]) && !strings.Contains(prefix, "*")
}

func isSeparator(c byte) bool { return strings.IndexByte(separators, c) >= 0 }

// Prefix is what all names of a template begin with.
func Prefix(template string) string { return strings.TrimSuffix(template, "*") }

// Has reports whether a name belongs to a template.
func Has(template, name string) bool {
	return Is(template) && !Is(name) && len(name) >= len(template) && strings.HasPrefix(name, Prefix(template))
}

// Of returns every template that a name could belong to, the longest first.
func Of(name string) []string {
	var all []string
	for i := len(name) - 2; i > 0; i-- {
		if t := name[:i+1] + "*"; isSeparator(name[i]) && Has(t, name) {
			all = append(all, t)
		}
	}
	return all
}

// Clash reports whether two names cannot be in one store: a name belongs to the other, which is a template, or
// both are templates and a name could belong to both. The counters of a name would begin again.
func Clash(a, b string) bool {
	if Is(a) && Is(b) {
		return a != b && (strings.HasPrefix(a, Prefix(b)) || strings.HasPrefix(b, Prefix(a)))
	}
	return Has(a, b) || Has(b, a)
}
