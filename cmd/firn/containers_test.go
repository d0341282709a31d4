//go:build !windows

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/store/open"
)

// A composeFile has the fields that the file of docs/reference/server.md uses, and no others.
type composeFile struct {
	Services map[string]struct {
		Image       string            `yaml:"image"`
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		Volumes     []string          `yaml:"volumes"`
		Ports       []string          `yaml:"ports"`
		Healthcheck struct {
			Test     []string `yaml:"test"`
			Interval string   `yaml:"interval"`
			Retries  int      `yaml:"retries"`
		} `yaml:"healthcheck"`
		DependsOn map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
		StopGracePeriod string `yaml:"stop_grace_period"`
		Restart         string `yaml:"restart"`
	} `yaml:"services"`
	Volumes map[string]struct{} `yaml:"volumes"`
}

// blockOf returns the first fenced block of a page that a pattern finds.
func blockOf(t *testing.T, page, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?ms)^```" + pattern + ".*?^```").FindString(string(text))
	if m == "" {
		t.Fatalf("%s has no block %s", page, pattern)
	}
	lines := strings.Split(m, "\n")
	return strings.Join(lines[1:len(lines)-1], "\n")
}

// TestComposeFile: the file is one of Compose as far as its fields go, its step creates no pool that may have been
// there, and its commands of firn do on a real PostgreSQL server what the page says.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	loader, err := yaml.NewLoader(strings.NewReader(blockOf(t, "../../docs/reference/server.md", "yaml\n# compose.yaml")), yaml.WithKnownFields(), yaml.WithUniqueKeys())
	if err != nil {
		t.Fatal(err)
	}
	var file composeFile
	if err := loader.Load(&file); err != nil {
		t.Fatal(err)
	}
	commands := map[string][]string{}
	for name, one := range file.Services {
		for on, how := range one.DependsOn {
			other, there := file.Services[on]
			healthy := how.Condition == "service_healthy" && len(other.Healthcheck.Test) > 1
			if !there || !healthy && (how.Condition != "service_completed_successfully" || other.Restart == "unless-stopped") {
				t.Errorf("%s depends on %s: %s", name, on, how.Condition)
			}
		}
		for _, volume := range one.Volumes {
			if _, there := file.Volumes[strings.SplitN(volume, ":", 2)[0]]; !there {
				t.Errorf("%s: there is no volume %s", name, volume)
			}
		}
		if !strings.HasSuffix(one.Image, "/firn") {
			continue
		}
		commands[name] = one.Command
		if err := open.Check(strings.Replace(one.Environment["FIRN_STORE"], "${DB_PASSWORD:?}", "s3cret", 1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if slices.Contains(one.Command, "create") {
			t.Errorf("%s creates what may have been there: %v", name, one.Command)
		}
	}
	if len(commands) != 2 || commands["pool"] == nil || commands["firn"] == nil {
		t.Fatalf("%v", commands)
	}
	url := database(t, testserver.Shared(t, testserver.Postgres), "compose")
	for range 2 {
		firnOn(t, url, 0, commands["pool"]...)
	}
	var args []string
	for _, arg := range commands["firn"][1:] {
		args = append(args, regexp.MustCompile(`^0\.0\.0\.0:\d+$`).ReplaceAllString(arg, "127.0.0.1:0"))
	}
	s := serve(t, t.TempDir(), append(args, "--store", url)...)
	if code, text := s.get("/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if code, text := s.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "ids start at") {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if err := s.redis("").Do(t.Context(), "INCR", "photo").Err(); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
		t.Errorf("INCR photo: %v", err)
	}
	s.stop()
}

// TestDockerfiles: go build accepts what the RUN lines of docs/guides/kubernetes.md say, and firn what ENTRYPOINT and CMD
// give it, also those of docs/reference/kubernetes.md.
func TestDockerfiles(t *testing.T) {
	image := blockOf(t, "../../docs/guides/kubernetes.md", "dockerfile\nFROM golang")
	run := regexp.MustCompile(`(?m)^RUN (.*)$`).FindAllStringSubmatch(image, -1)
	if len(run) != 1 {
		t.Fatalf("%q", run)
	}
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(run[0][1], "go build ", "go build -n ", 1)) // it prints what it would do
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil || !strings.Contains(string(out), "/program") {
		t.Errorf("%s: %v\n%.2000s", run[0][1], err, out)
	}
	for _, text := range []string{image, blockOf(t, "../../docs/reference/kubernetes.md", "dockerfile\nCOPY firn")} {
		var words []string
		for _, line := range regexp.MustCompile(`(?m)^(?:ENTRYPOINT|CMD) (\[.*\])$`).FindAllStringSubmatch(text, -1) {
			var part []string
			if err := json.Unmarshal([]byte(line[1]), &part); err != nil {
				t.Fatalf("%s: %v", line[0], err)
			}
			words = append(words, part...)
		}
		if len(words) < 3 || filepath.Base(words[0]) != "firn" && words[0] != "/program" {
			t.Fatalf("%q", words)
		}
		cmd, rest, err := newRoot().Find(words[1:])
		if err == nil {
			err = cmd.ParseFlags(rest)
		}
		if err != nil || cmd.HasSubCommands() && cmd.Name() != "serve" {
			t.Errorf("%q: %v", words, err)
		}
	}
}
