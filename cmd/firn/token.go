package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/template"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/server"
)

func newToken() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "token",
		Aliases: []string{"tokens"},
		Short:   "Create access tokens for firn serve",
		Example: "  firn token create shop",
		RunE:    needsCommand,
	}
	cmd.AddCommand(newTokenCreate())
	return cmd
}

func newTokenCreate() *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an access token for firn serve",
		Long: `Create an access token for a program that draws from firn serve, and print it with what to
write into the server's firn.yaml, where NAME is what the token is called. firn.yaml holds only
a hash: the token itself is shown this once, is kept nowhere, and cannot be found again. After
kill -HUP a running server knows its new tokens.

A program shows it with AUTH in the Redis protocol, and over HTTP as
Authorization: Bearer TOKEN.

  decode  read what is in an id
  issue   draw from the series
  admin   see its state; for "*", the metrics`,
		Example: `  firn token create shop
  firn token create shop --series orders --series photo --rights issue
  firn token create prometheus --rights admin --json`,
		Args: arguments(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if err := o.validate(); err != nil {
				return err
			}
			o.json = wantsJSON(cmd)
			token := randomToken()
			_, err := cmd.OutOrStdout().Write(o.answer(token))
			if err == nil && !o.json {
				err = ui.PrintNote(cmd.ErrOrStderr(), "if firn.yaml has tokens already, add only this entry to them: %s", o.entry(token))
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&o.series, "series", []string{"*"}, "a series it is for; bill:*: all names that begin so; *: all that no right is given for by name; may be given several times")
	cmd.Flags().StringSliceVar(&o.rights, "rights", []string{"issue", "decode"}, "what it may do with it: decode, issue, admin")
	return cmd
}

type tokenOptions struct {
	name   string
	series []string
	rights []string
	json   bool
}

func (o *tokenOptions) validate() error {
	if !config.IsSeriesName(o.name) {
		return ui.Bad("token %q: %s", o.name, config.SeriesNameRule)
	}
	for i, name := range o.series {
		switch {
		case name != "*" && !template.Is(name) && !config.IsSeriesName(name):
			f := ui.Bad("--series %q: %s", name, config.SeriesNameRule)
			if strings.Contains(name, ",") {
				f.Hint("for several series: --series %s", strings.Join(strings.Split(name, ","), " --series "))
			}
			return f
		case slices.Contains(o.series[:i], name):
			return ui.Bad("--series %s is given twice", name)
		}
	}
	if len(o.rights) == 0 {
		return ui.Bad("--rights: a token without any is of no use")
	}
	for _, r := range o.rights {
		if _, err := server.ParseRight(r); err != nil {
			return ui.Bad("--rights: %s", phrase.WithoutPackage(err.Error()))
		}
	}
	return nil
}

// randomToken returns a token that nobody guesses: 256 random bits.
func randomToken() string {
	var b [32]byte
	rand.Read(b[:])
	return "firn_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenHashText is a token's hash as firn.yaml has it.
func tokenHashText(token string) string {
	hash := server.HashToken(token)
	return config.HashPrefix + hex.EncodeToString(hash[:])
}

// entry is what firn.yaml says of the token, below tokens.
func (o *tokenOptions) entry(token string) string {
	var rights []string
	for _, name := range o.series {
		if strings.Contains(name, "*") {
			name = strconv.Quote(name)
		}
		rights = append(rights, fmt.Sprintf("%s: [%s]", name, strings.Join(o.rights, ", ")))
	}
	return fmt.Sprintf("%s: { hash: %q, rights: { %s } }", o.name, tokenHashText(token), strings.Join(rights, ", "))
}

// answer is what the command prints of a token.
func (o *tokenOptions) answer(token string) []byte {
	config := "tokens: { " + o.entry(token) + " }"
	if !o.json {
		return fmt.Appendf(nil, "%s\n%s\n", token, config)
	}
	line, err := json.Marshal(struct {
		Name   string `json:"name"`
		Token  string `json:"token"`
		Hash   string `json:"hash"`
		Config string `json:"config"`
	}{o.name, token, tokenHashText(token), config})
	if err != nil {
		panic(err) // they are texts
	}
	return append(line, '\n')
}
