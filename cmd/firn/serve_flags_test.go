package main

import (
	"errors"
	"regexp"
	"testing"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/document"
	"github.com/firn-id/firn/internal/leaseoptions"
	"github.com/firn-id/firn/lease"
	"github.com/firn-id/firn/sequence"
	"github.com/firn-id/firn/server/daemon"
)

// What a server logs, and answers, names no flag of another command besides those of a command
// that is written out.
func TestServeHintsHaveNoFlagsOfOthers(t *testing.T) {
	command := regexp.MustCompile(`firn [a-z][^;:]*`)
	flag := regexp.MustCompile(`(^|\s)--?[a-z][a-z-]*`)
	serve := newServe()
	flake := &config.Series{Kind: config.Flake, URLs: []string{"memory:"}, Leasing: &config.Leasing{Pool: "web", From: map[string]string{"worker": "firn.yaml:4"}}}
	orders := &config.Series{Name: "orders", Kind: config.Sequence, URLs: []string{"memory:"}}
	few := &config.Series{Name: "few", Kind: config.Document, URLs: []string{"memory:"}}
	for _, p := range []daemon.Problem{
		{Series: flake, Err: &lease.FreshError{Pool: "web"}},
		{Series: flake, Err: &leaseoptions.HostNameError{Err: errors.New("no name")}},
		{Series: orders, Err: &sequence.EndError{Name: "orders", Max: 10, Left: 3}},
		{Series: orders, Err: &sequence.EndError{Name: "orders", Max: 10}},
		{Series: few, Err: &document.EndError{Series: "few", Pattern: "F{1}", Max: 9, Left: 3}},
	} {
		text := hinter{cmd: serve}.serving(p)
		if bare := flag.FindString(command.ReplaceAllString(text, "")); bare != "" || text == "" {
			t.Errorf("%T: %q in %q", p.Err, bare, text)
		}
	}
}
