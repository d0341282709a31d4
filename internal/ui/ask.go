package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	terminal "golang.org/x/term"
)

// A Person answers at a terminal what a command asks.
type Person struct {
	in  io.Reader
	out io.Writer
}

// Streams are what a command reads and writes, as a *cobra.Command has them.
type Streams interface {
	InOrStdin() io.Reader
	OutOrStdout() io.Writer
	ErrOrStderr() io.Writer
}

// PersonAt returns who can be asked: somebody if standard input is a terminal, else
// nil. Questions go to standard error, or to standard output where only that is a
// terminal.
func PersonAt(cmd Streams) *Person {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !terminal.IsTerminal(int(in.Fd())) {
		return nil
	}
	if out := cmd.OutOrStdout(); IsTerminal(out) && !IsTerminal(cmd.ErrOrStderr()) {
		return &Person{in, out}
	}
	return &Person{in, cmd.ErrOrStderr()}
}

// MustAsk returns nil if a person at a terminal answers a question with yes. Where
// nobody can be asked it is an error, whose hint is what says yes instead.
func MustAsk(ctx context.Context, cmd Streams, question, instead string) error {
	p := PersonAt(cmd)
	if p == nil {
		return Bad("standard input is not a terminal, so nobody can confirm: %s", question).Hint("if so: %s", instead)
	}
	return p.Ask(ctx, question)
}

// Ask returns nil if the person answers a question with yes, and the error of ctx if
// that ends before. A read from a terminal cannot be broken off: it is left behind.
func (p *Person) Ask(ctx context.Context, question string) error {
	return p.answer(ctx, question+" Type yes to continue: ", "yes")
}

// Agree is ask for what y is answer enough to.
func (p *Person) Agree(ctx context.Context, question string) error {
	return p.answer(ctx, question+" [y/N] ", "y", "yes")
}

// answer returns nil if the person answers in one of these words.
func (p *Person) answer(ctx context.Context, question string, words ...string) error {
	fmt.Fprint(p.out, question)
	said := make(chan error, 1)
	go func() {
		answer, err := bufio.NewReader(p.in).ReadString('\n')
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			said <- err
		case !slices.Contains(words, strings.ToLower(strings.TrimSpace(answer))):
			said <- declined(strings.TrimSpace(answer), words[0])
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

// longestAnswer is how much of an answer an error repeats.
const longestAnswer = 20

// declined is the error of an answer that is not the word to type. Somebody who means yes is told which word that is.
func declined(answer, word string) error {
	switch strings.ToLower(answer) {
	case "", "n", "no":
		return Failed("nothing was done")
	}
	if short := []rune(answer); len(short) > longestAnswer {
		answer = string(short[:longestAnswer]) + "..."
	}
	return Failed("nothing was done: the answer was %q; type %s", answer, word)
}
