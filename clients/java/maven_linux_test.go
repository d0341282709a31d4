//go:build amd64 || arm64

package java_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/firn-id/firn/clients/internal/clienttest"
	"github.com/firn-id/firn/internal/testserver"
	"github.com/firn-id/firn/internal/version"
)

// A maven builds projects with the plugins of Debian, and with a local repository that is empty at first.
type maven struct {
	program, settings string
	repository        string
}

func newMaven(t *testing.T) *maven {
	t.Helper()
	m := &maven{program: testserver.Maven(t), settings: filepath.Join(t.TempDir(), "settings.xml"), repository: t.TempDir()}
	text := fmt.Sprintf(`<settings>
	<localRepository>%s</localRepository>
	<mirrors><mirror><id>debian</id><mirrorOf>*</mirrorOf><url>file://%s</url></mirror></mirrors>
</settings>
`, m.repository, testserver.MavenRepository)
	if err := os.WriteFile(m.settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *maven) build(t *testing.T, dir, goal string) {
	t.Helper()
	out := clienttest.Output(t, dir, m.program, "--batch-mode", "--settings", m.settings, "--global-settings", m.settings, goal)
	if strings.Contains(out, "problems were encountered while building the effective model") {
		t.Errorf("Maven warns of the project:\n%s", out)
	}
}

// user is a project of Maven, with its dependencies and what it is built with.
const user = `<project xmlns="http://maven.apache.org/POM/4.0.0">
	<modelVersion>4.0.0</modelVersion>
	<groupId>example</groupId>
	<artifactId>user</artifactId>
	<version>1</version>
	<properties>
		<maven.compiler.release>17</maven.compiler.release>
		<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
	</properties>
	%s
	%s
</project>
`

// TestMaven: mvn install puts the jar into the local repository, and another project of Maven depends on it and takes ids.
func TestMaven(t *testing.T) {
	testserver.OnlyLong(t)
	m, dir := newMaven(t), t.TempDir()
	pom, err := os.ReadFile("pom.xml")
	if err == nil {
		err = os.CopyFS(filepath.Join(dir, "firn", "src"), os.DirFS("src"))
	}
	if err != nil {
		t.Fatal(err)
	}
	clienttest.Copy(t, filepath.Join(dir, "firn"), "pom.xml")
	m.build(t, filepath.Join(dir, "firn"), "install")
	jar := filepath.Join(m.repository, "id/firn/firn", version.Number, "firn-"+version.Number+".jar")
	if out := clienttest.Output(t, dir, "jar", "--describe-module", "--file", jar); !strings.Contains(out, "id.firn") || !strings.Contains(out, "exports id.firn") {
		t.Errorf("the module of the jar: %s", out)
	}

	dependency := clienttest.Samples(t, "README.md", "xml")[0]
	if !strings.Contains(dependency, "<version>"+version.Number+"</version>") {
		t.Errorf("the README does not have version %s: %s", version.Number, dependency)
	}
	_, rest, _ := strings.Cut(string(pom), "<build>")
	plugins, _, ok := strings.Cut(rest, "</build>")
	source := filepath.Join(dir, "user", "src", "main", "java")
	err = os.MkdirAll(source, 0o700)
	for path, text := range map[string]string{
		filepath.Join(source, "Example.java"): clienttest.Samples(t, "README.md", "java")[0],
		filepath.Join(dir, "user", "pom.xml"): fmt.Sprintf(user, "<dependencies>"+dependency+"</dependencies>", "<build>"+plugins+"</build>"),
	} {
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
	}
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	m.build(t, filepath.Join(dir, "user"), "package")
	agent := clienttest.Serve(t)
	cmd := exec.CommandContext(t.Context(), "java", "-cp", filepath.Join(dir, "user/target/user-1.jar")+":"+jar, "Example", agent.Path)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), " 1000\n") {
		t.Errorf("%s, %v", out, err)
	}
}
