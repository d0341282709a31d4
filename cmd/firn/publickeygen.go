package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/internal/phrase"
	"github.com/firn-id/firn/internal/ui"
	"github.com/firn-id/firn/public"
)

func newPublicKeygen() *cobra.Command {
	var o keygenOptions
	cmd := &cobra.Command{
		Use:   "keygen [--out FILE [--append]]",
		Short: "Create a key for a public form",
		Long: `Make a random key of 256 bits for ciphers and tokens, and print it, or write it to a
new file that only you can read. A file that is there is not touched, unless
--append adds a key with the next number behind the others.

The first key of a file writes, all read. To change the key of tokens: append one,
bring the file to every process that reads tokens, then move its line to the top
where tokens are written. A cipher has one key and cannot change it.

Keep a copy in a safe place: what a key has written cannot be read without it.`,
		Example: `  firn public keygen --out firn.keys
  firn public keygen --out firn.keys --append
  firn public keygen | kubectl create secret generic firn --from-file=firn.keys=/dev/stdin`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.out == "" && cmd.Flags().Changed("out") {
				return ui.Bad("--out is empty").Hint("firn public keygen --out firn.keys") // and the key is not for the screen
			}
			o.json = wantsJSON(cmd)
			return o.run(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "the file to write it to")
	cmd.Flags().BoolVar(&o.more, "append", false, "the file is there: add a key behind those in it")
	return cmd
}

type keygenOptions struct {
	out  string
	more bool
	json bool
}

// keyFileHead begins a new key file.
const keyFileHead = `# Keys of public forms (firn public). Keep them secret, and keep a copy: what a key
# has written cannot be read without it. The first key writes, all read.
`

func (o *keygenOptions) run(out io.Writer) error {
	switch {
	case o.more && o.out == "":
		return ui.Bad("--append needs a file").Hint("firn public keygen --out firn.keys --append")
	case o.more:
		return o.add(out)
	}
	k, err := public.NewKey(1)
	if err != nil {
		return err
	}
	if o.out == "" {
		return o.print(out, k)
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return ui.Failed("%s is there already", o.out).Hint("to add a key to it: firn public keygen --out %s --append", phrase.ShellWord(o.out))
	case err != nil:
		return ui.Failed("%w", err)
	}
	err = writeAll(f, keyFileHead+k.Secret()+"\n")
	if err == nil {
		err = syncDir(filepath.Dir(o.out))
	}
	if err != nil {
		os.Remove(o.out) // half a key is none
		return ui.Failed("%w", err)
	}
	return o.print(out, k)
}

// add appends a key to a file that is there.
func (o *keygenOptions) add(out io.Writer) error {
	switch info, err := os.Stat(o.out); {
	case errors.Is(err, fs.ErrNotExist):
		return &config.KeysError{Source: o.out}
	case err != nil:
		return ui.Bad("%w", err)
	case !info.Mode().IsRegular():
		return ui.Bad("--out %s: it is no regular file", o.out)
	}
	text, err := os.ReadFile(o.out)
	if err != nil {
		return ui.Bad("%w", err)
	}
	keys, err := public.LoadKeys(o.out)
	if err != nil {
		return ui.Bad("%s", phrase.WithoutPackage(err.Error()))
	}
	highest := 0
	for _, k := range keys {
		highest = max(highest, k.Number())
	}
	k, err := public.NewKey(highest + 1)
	if err != nil {
		return ui.Failed("%s has key %d, and none has a higher number", o.out, highest)
	}
	line := k.Secret() + "\n"
	if len(text) > 0 && text[len(text)-1] != '\n' {
		line = "\n" + line
	}
	f, err := os.OpenFile(o.out, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return ui.Failed("%w", err)
	}
	if err := writeAll(f, line); err != nil {
		return ui.Failed("%w", err)
	}
	return o.print(out, k)
}

// writeAll writes text and sees to it that it stays.
func writeAll(f *os.File, text string) error {
	_, err := f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// syncDir makes the names in dir durable, where its file system knows how. Windows writes names down
// with the file.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil // a name may be made in a directory that this user may not read
	}
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// print prints the key, or where it is.
func (o *keygenOptions) print(out io.Writer, k public.Key) error {
	line := struct {
		Number int    `json:"number"`
		Key    string `json:"key,omitempty"`
		File   string `json:"file,omitempty"`
	}{Number: k.Number(), File: o.out}
	if o.out == "" {
		line.Key = k.Secret()
	}
	var err error
	switch {
	case o.json:
		err = json.NewEncoder(out).Encode(line)
	case o.out == "":
		_, err = fmt.Fprintln(out, line.Key)
	default:
		_, err = fmt.Fprintf(out, "key %d is in %s\n", line.Number, line.File)
	}
	return err
}
