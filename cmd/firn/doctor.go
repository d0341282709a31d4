package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/doctor"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/internal/whichstore"
	shared "github.com/firn-id/firn/page"
	"github.com/firn-id/firn/store"
)

func newDoctor() *cobra.Command {
	var page string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check config, store, clock and pools, and say what to fix",
		Long: `Check what a process that leases would find: the config, the store and what it
promises, the clock, and of each pool the layout, the workers, how long ids continue
while the store is away, what a crash costs now and what a failover does. A line for
each, ok, warn or bad, and what to do. A counter has a line if nobody can draw from it.

Nothing is written: no pool is founded and no worker taken. With --pool, it checks only that
pool; else all of the store and of firn.yaml. Flags of a pool are those
of the commands that lease. With --page, it checks too whether this user can run firn agent
for a page at that path.

The exit code is 3 if something is bad.`,
		Example: `  firn doctor
  firn doctor --store sqlite:/var/lib/app/ids.db --pool web --json
  firn doctor --page /run/firn/page`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p := &findings{cmd: cmd, out: ui.Verdict{Writer: cmd.OutOrStdout()}, hints: hinter{cmd: cmd}, json: wantsJSON(cmd)}
			p.environment()
			if page != "" {
				p.page(page)
			}
			if set := p.settings(); set != nil {
				for f := range doctor.Config(cmd.Context(), set.Config, &doctor.Options{Hostname: hostname}) {
					p.found(f)
				}
			}
			return p.end(cmd.Context())
		},
	}
	addStore(cmd)
	addPool(cmd)
	cmd.Flags().StringVar(&page, "page", "", "the `PATH` of a page: check whether firn agent can serve it there")
	return cmd
}

// The findings of a doctor are printed as they come: a store can be slow to answer.
type findings struct {
	cmd   *cobra.Command
	out   io.Writer
	hints hinter
	json  bool
	err   error // of printing

	all, bad int
}

// environment tells of variables that somebody may think firn reads.
func (p *findings) environment() {
	for _, v := range strayVariables(p.cmd.Root(), os.Environ()) {
		p.print(doctor.Finding{State: doctor.Warning, Check: "environment", Text: v.text(), Do: v.do})
	}
}

// page checks whether an agent can serve a page at a path. Neither a page of an agent that has ended nor one of another boot is in
// its way: it replaces them.
func (p *findings) page(path string) {
	f := doctor.Finding{State: doctor.OK, Check: "page", Text: path + ": firn agent can serve a page there"}
	err := shared.Check(path)
	var unusable *shared.UnusableError
	switch {
	case errors.As(err, &unusable) && unusable.Served:
		f.Text = path + ": an agent serves it"
	case errors.As(err, &unusable):
		f.State, f.Text = doctor.Bad, unusable.Path+": "+unusable.Why
	case err != nil:
		f.State, f.Text = doctor.Bad, phrase.WithoutPackage(err.Error())
	}
	p.print(f)
}

// settings reads the settings; nil: they cannot be read.
func (p *findings) settings() *settings {
	set, err := loadSettings(p.cmd)
	var faulty *config.FaultsError
	switch {
	case errors.As(err, &faulty):
		for line := range strings.Lines(faulty.Error()) {
			p.print(doctor.Finding{State: doctor.Bad, Check: "config", Text: strings.TrimSpace(line)})
		}
		return nil
	case err != nil:
		p.found(doctor.Finding{State: doctor.Bad, Check: "config", Err: err})
		return nil
	}
	return set
}

// found prints a finding, with what this command says of its error.
func (p *findings) found(f doctor.Finding) {
	if f.Err != nil && f.Do == "" {
		said := p.explain(f)
		f.Text, f.Do = phrase.WithoutPackage(said.Error()), p.hints.line(said)
	} else {
		f.Do = p.hints.compose(f.Do)
	}
	p.print(f)
}

// explain adds to the error of a finding what can be done about it.
func (p *findings) explain(f doctor.Finding) *ui.Failure {
	err := f.Err
	switch {
	case f.Series != nil:
		err = (&drawing{f.Series, p.hints}).explain(err)
	case f.Pool != nil:
		err = poolFailure(err, poolPlace{url: whichstore.Text(f.Pool.URL), from: f.Pool.From, shard: f.Pool.Options.Shard, file: f.Pool.File})
	case errors.As(err, new(*store.OtherStoreError)):
		err = poolTrouble(p.cmd, err)
	default:
		err = forgotten(p.cmd, err)
	}
	var said *ui.Failure
	if !errors.As(err, &said) {
		said = classify(err)
	}
	return said
}

func (p *findings) print(f doctor.Finding) {
	if p.err != nil {
		return // nobody reads it
	}
	p.all++
	if f.State == doctor.Bad {
		p.bad++
	}
	var err error
	if p.json {
		err = json.NewEncoder(p.out).Encode(f)
	} else {
		text := strings.ReplaceAll(f.Text, "\n", "; ")
		if f.Do != "" {
			text += "; " + f.Do
		}
		_, err = fmt.Fprintf(p.out, "%-4s  %s: %s\n", f.State, f.Check, text)
	}
	p.err = err
}

// end says whether something bad was found.
func (p *findings) end(ctx context.Context) error {
	if err := errors.Join(p.err, ctx.Err()); err != nil {
		return err
	}
	if p.bad > 0 {
		return &ui.Failure{Code: ui.ExitFound, Err: fmt.Errorf("%d of %d checks found something bad", p.bad, p.all)}
	}
	return nil
}
