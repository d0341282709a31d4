//go:build !linux

package sqlite

func shortLived(string) string { return "" }
