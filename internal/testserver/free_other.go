//go:build !linux

package testserver

func free(string) uint64 { return 0 }
