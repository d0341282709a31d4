package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/public"
)

func newPublic() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "public",
		Short: "Write ids as outsiders may see them, and make keys",
		Long: `Write ids as outsiders may see them, and make the keys that it takes. firn decode
reads them back; docs/guides/public-forms.md says what each form hides and what not.`,
		Example: `  firn public keygen --out firn.keys
  firn public encode --as opaque:photo --series photo --keys firn.keys 175928847299117063`,
		RunE: needsCommand,
	}
	cmd.AddCommand(newPublicLs(), newPublicEncode(), newPublicKeygen())
	return cmd
}

func newPublicEncode() *cobra.Command {
	var series string
	cmd := &cobra.Command{
		Use:   "encode [--as FORM] [--series SERIES] [ID...]",
		Short: "Write ids in a public form",
		Long: `Write ids in a public form, one a line. Ids are arguments, or lines of standard
input where there are none or "-".

FORM is the name of a form (firn public ls), and for some a value behind a colon:

  decimal, hex, crockford, base58, flickr58, base62, base64url
                      encodings, which hide nothing; base64url is that of
                      Instagram's short codes
  reversed[:ENCODING] the bits in reverse order
  cipher[:ENCODING]   another positive 64-bit number, without order or count
  opaque[:PREFIX]     a text that nobody without the key can make
  hashids, sqids      for links of that kind; salt and alphabet are in firn.yaml
  public              what firn.yaml says of the series, also where there is no --as

A cipher and an opaque id depend on the series and on a key, which is in a file or a
variable. A line that is no id is reported on standard error, with its number. The others
are written all the same, and the exit code is 2.`,
		Example: `  firn public encode --as base62 175928847299117063
  firn public encode --as opaque:photo --series photo --keys firn.keys 175928847299117063
  firn public encode --series photo < ids.txt`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := loadSettings(cmd)
			if err != nil {
				return err
			}
			e := newFormEncoder(cmd.OutOrStdout(), cmd.ErrOrStderr())
			e.tell(cmd.Context())
			if e.spec, err = s.formWanted(series); err != nil {
				return err
			}
			if e.form, err = e.spec.Open(warnOn(e.errs)); err != nil {
				return err
			}
			e.json = wantsJSON(cmd)
			if len(args) == 0 || len(args) == 1 && args[0] == "-" {
				return e.stream(cmd.InOrStdin())
			}
			return e.all(args)
		},
	}
	addForm(cmd, "the form; firn public encode --help lists them")
	cmd.Flags().StringVar(&series, "series", "", "the series whose ids they are")
	return cmd
}

// errFormless is of a series whose ids have no public form.
var errFormless = errors.New("in which form?")

// formWanted returns the form for a command that needs one: that of --as, or of the
// series in firn.yaml.
func (s *settings) formWanted(series string) (*config.Form, error) {
	if err := config.CheckNoKey(series); err != nil {
		return nil, ui.Bad("--series: %w", err)
	}
	if series != "" && !config.IsSeriesName(series) {
		return nil, ui.Bad("--series %q: %s", series, config.SeriesNameRule)
	}
	if series != "" && s.File != nil && len(s.File.Series) > 0 {
		if _, err := s.File.SeriesNamed(series); err != nil {
			return nil, err // a name mistyped would give other texts, and nobody would notice
		}
	}
	if spec, err := s.Form(series); spec != nil || err != nil {
		return spec, err
	}
	if spec := s.FormOf(series); spec != nil {
		return s.WithKeys(spec)
	}
	if series == "" {
		return nil, ui.Bad("in which form? --as is missing").Hint("--as base62, or --as opaque:photo --series photo --keys FILE")
	}
	return nil, ui.Bad("%w series %q has none in firn.yaml", errFormless, series).
		Hint("--as opaque:%s --keys FILE", series).Hint("series: { %s: { public: opaque } } in firn.yaml", series)
}

// A formEncoder writes any number of ids in a form.
type formEncoder struct {
	answers
	json bool
	spec *config.Form
	form public.Form
}

func newFormEncoder(out, errs io.Writer) *formEncoder {
	e := new(formEncoder)
	e.answers = newAnswers(out, errs, "written", e.encode)
	return e
}

func (e *formEncoder) encode(text []byte) error {
	var id firn.ID
	err := readID(&id, text)
	if err != nil {
		return err
	}
	if !e.json {
		e.line, err = e.form.Append(e.line[:0], id)
		e.line = append(e.line, '\n')
		return err
	}
	written, err := e.form.Append(nil, id)
	if err != nil {
		return err
	}
	e.line = append(append(e.line[:0], `{"id":"`...), text...)
	e.line = appendFormJSON(append(e.line, '"'), e.spec.Kind.Name, e.spec.Series, string(written))
	e.line = append(e.line, "}\n"...)
	return nil
}

// appendFormJSON appends the fields that say in which form an id is written.
func appendFormJSON(dst []byte, form, series, text string) []byte {
	dst = append(append(append(dst, `,"form":"`...), form...), '"')
	if series != "" {
		dst = append(append(append(dst, `,"series":"`...), series...), '"')
	}
	quoted, err := json.Marshal(text) // the alphabet of a hashid may be anything
	if err != nil {
		panic(err) // a string can always be written
	}
	return append(append(dst, `,"text":`...), quoted...)
}
