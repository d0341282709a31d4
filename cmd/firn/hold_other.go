//go:build !linux && !windows

package main

import (
	"syscall"
	"time"
)

// A leash does nothing: this system has no signal at the death of a parent.
type leash struct{}

func newLeash(time.Time) (*leash, error)        { return &leash{}, nil }
func (*leash) until(time.Time) error            { return nil }
func (*leash) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
func (*leash) tie(int) error                    { return nil }
func (*leash) off()                             {}

func adopt() error    { return nil }
func children() []int { return nil }

func underFirst() (int, bool) { return 0, false }
