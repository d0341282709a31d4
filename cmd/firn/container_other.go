//go:build !linux

package main

func fileSystem(string) string { return "" }
