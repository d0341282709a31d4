package testserver

import "testing"

// mavenKind is Maven with the plugins of its standard build. Debian keeps them in a repository in a directory.
var mavenKind = &kind{
	name: "maven",
	packages: []string{
		"maven", "libmaven-resources-plugin-java", "libmaven-compiler-plugin-java", "libsurefire-java", "libmaven-jar-plugin-java", "libmaven-install-plugin-java",
	},
	binaries: []string{
		"mvn", "javac", mavenPlugins + "maven-resources-plugin", mavenPlugins + "maven-compiler-plugin", mavenPlugins + "maven-surefire-plugin", mavenPlugins + "maven-jar-plugin",
		mavenPlugins + "maven-install-plugin",
	},
	long: true,
}

// MavenRepository is where Debian keeps the packages that Maven can use.
const MavenRepository = "/usr/share/maven-repo"

const mavenPlugins = MavenRepository + "/org/apache/maven/plugins/"

// Maven returns the path of mvn. Its plugins are in [MavenRepository].
func Maven(tb testing.TB) string {
	tb.Helper()
	require(tb, mavenKind)
	return program("mvn")
}
