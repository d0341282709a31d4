package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An apt fetches packages of a suite of Debian into a directory. It changes nothing of this machine's,
// and believes the keys that this machine believes.
type apt struct {
	work string // the packages are unpacked here
	env  []string
}

// newApt returns an apt, which has the lists of a suite. An empty architecture means this machine's.
func newApt(work, suite, architecture string) (*apt, error) {
	apt := &apt{work: work}
	dir := apt.dir()
	for _, name := range []string{"state/lists/partial", "archives/partial", "parts"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			return nil, err
		}
	}
	conf := fmt.Sprintf(`Dir::State "%[1]s/state"; Dir::State::status "%[1]s/status"; Dir::Cache "%[1]s"; Dir::Cache::archives "%[1]s/archives";
Dir::Etc::sourcelist "%[1]s/sources.list"; Dir::Etc::sourceparts "%[1]s/parts"; Dir::Etc::preferencesparts "%[1]s/parts";
APT::Install-Recommends "false"; APT::Sandbox::User "root"; Acquire::Languages "none"; Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
`, dir)
	if architecture != "" {
		conf += fmt.Sprintf("APT::Architecture %[1]q; APT::Architectures { %[1]q; };\n", architecture)
	}
	files := map[string]string{"status": "", "sources.list": "deb " + mirror() + " " + suite + " main\n", "conf": conf}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	apt.env = []string{"APT_CONFIG=" + filepath.Join(dir, "conf"), "DEBIAN_FRONTEND=noninteractive"}
	return apt, tool(apt.env, work, "apt-get", "-q", "update")
}

func (a *apt) dir() string { return filepath.Join(a.work, "apt") }

// install fetches packages and all that they need.
func (a *apt) install(packages ...string) error {
	return tool(a.env, a.work, "apt-get", append([]string{"-q", "-y", "--download-only", "install"}, packages...)...)
}

// fetch fetches packages without what they need.
func (a *apt) fetch(packages ...string) error {
	return tool(a.env, filepath.Join(a.dir(), "archives"), "apt-get", append([]string{"-q", "download"}, packages...)...)
}

// unpack unpacks all that was fetched, and removes the apt.
func (a *apt) unpack() error {
	packages, err := filepath.Glob(filepath.Join(a.dir(), "archives/*.deb"))
	if err != nil {
		return err
	}
	for _, p := range packages {
		if err := tool(nil, a.work, "dpkg-deb", "-x", p, a.work); err != nil {
			return err
		}
	}
	return os.RemoveAll(a.dir())
}

// mirror is where this machine has its packages from.
func mirror() string {
	sources, _ := filepath.Glob("/etc/apt/sources.list.d/*.sources")
	for _, path := range append(sources, "/etc/apt/sources.list") {
		b, _ := os.ReadFile(path)
		for line := range strings.Lines(string(b)) {
			for _, word := range strings.Fields(line) {
				if strings.HasPrefix(word, "http") && strings.HasSuffix(strings.TrimSuffix(word, "/"), "/debian") {
					return word
				}
			}
		}
	}
	return "http://deb.debian.org/debian"
}
