package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	terminal "golang.org/x/term"
)

// This file asks a person before a command does what cannot be taken back.

// A person answers at a terminal what a command asks.
type person struct {
	in  io.Reader
	out io.Writer
}

// personAt returns who can be asked: somebody if standard input is a terminal, else
// nil. Questions go to standard error, or to standard output where only that is a
// terminal.
func personAt(cmd *cobra.Command) *person {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !terminal.IsTerminal(int(in.Fd())) {
		return nil
	}
	if out := cmd.OutOrStdout(); isTerminal(out) && !isTerminal(cmd.ErrOrStderr()) {
		return &person{in, out}
	}
	return &person{in, cmd.ErrOrStderr()}
}

// mustAsk returns nil if a person at a terminal answers a question with yes. Where
// nobody can be asked it is an error, whose hint is what says yes instead.
func mustAsk(ctx context.Context, cmd *cobra.Command, question, instead string) error {
	p := personAt(cmd)
	if p == nil {
		return bad("standard input is not a terminal, so nobody can confirm: %s", question).hint("if so: %s", instead)
	}
	return p.ask(ctx, question)
}

// ask returns nil if the person answers a question with yes, and the error of ctx if
// that ends before. A read from a terminal cannot be broken off: it is left behind.
func (p *person) ask(ctx context.Context, question string) error {
	return p.answer(ctx, question+" Type yes to continue: ", "yes")
}

// agree is ask for what y is answer enough to.
func (p *person) agree(ctx context.Context, question string) error {
	return p.answer(ctx, question+" [y/N] ", "y", "yes")
}

// answer returns nil if the person answers in one of these words.
func (p *person) answer(ctx context.Context, question string, words ...string) error {
	fmt.Fprint(p.out, question)
	said := make(chan error, 1)
	go func() {
		answer, err := bufio.NewReader(p.in).ReadString('\n')
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			said <- err
		case !slices.Contains(words, strings.ToLower(strings.TrimSpace(answer))):
			said <- failed("nothing was done")
		default:
			said <- nil
		}
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-said:
		return err
	}
}
