// Package site tests the pages as HTML, which make site writes. The layouts, styles and scripts
// are beside it, and the text is README.md and docs.
package site
