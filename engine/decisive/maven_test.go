package decisive_test

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/decisive"
)

// TestWhatMavenSaysIsFound in what versions 3.8 and 3.9 print; its last lines are always the same.
func TestWhatMavenSaysIsFound(t *testing.T) {
	const help = "[ERROR] \n[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.\n[ERROR] Re-run Maven using the -X switch to enable full debug logging.\n[ERROR] \n" +
		"[ERROR] For more information about the errors and possible solutions, please read the following articles:\n[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/MojoFailureException\n" +
		"[ERROR] \n[ERROR] After correcting the problems, you can resume the build with the command\n[ERROR]   mvn <args> -rf :app\n"
	const app, test = "app/src/main/java/ex/App.java", "core/src/test/java/ex/CoreTest.java"
	tree := decisive.Tree{Root: "/tree", Has: func(name string) bool { return slices.Contains([]string{app, test, "pom.xml"}, name) },
		Ending: func(name string) []string {
			if strings.HasSuffix(test, "/"+name) {
				return []string{test}
			}
			return nil
		}}
	for name, c := range map[string]struct{ output, want string }{
		"a compiler": {"Tests run: 1, Failures: 0, Errors: 0, Skipped: 0\n\n[ERROR] COMPILATION ERROR : \n[ERROR] /tree/" + app + ":[3,57] cannot find symbol\n  symbol:   method thrice(int)\n  location: class ex.Core\n" +
			"[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.1:compile (default-compile) on project app: Compilation failure\n[ERROR] /tree/" + app +
			":[3,57] cannot find symbol\n[ERROR]   symbol:   method thrice(int)\n[ERROR]   location: class ex.Core\n[ERROR] -> [Help 1]\n", app + ":3: cannot find symbol: method thrice(int)"},
		"a tag": {"[ERROR] [ERROR] Some problems were encountered while processing the POMs:\n[FATAL] Non-parseable POM /tree/pom.xml: Unrecognised tag: 'modulez' (position: START_TAG seen ...</packaging>\\n  <modulez>... @4:12)  @ line 4, column 12\n @ \n" +
			"[ERROR] The build could not read 1 project -> [Help 1]\n[ERROR]   \n[ERROR]   The project  (/tree/pom.xml) has 1 error\n", "pom.xml:4: Unrecognised tag: 'modulez' (position: START_TAG seen ...</packaging>\\n <modulez>... @4:12)"},
		"a version": {"[ERROR] [ERROR] Some problems were encountered while processing the POMs:\n[ERROR] 'dependencies.dependency.version' for a:b:jar is missing. @ line 9, column 17\n @ \n[ERROR] The build could not read 1 project -> [Help 1]\n",
			"pom.xml:9: 'dependencies.dependency.version' for a:b:jar is missing."},
		"a dependency": {"[ERROR] Failed to execute goal on project core: Could not resolve dependencies for project ex:core:jar:1: Could not find artifact junit:junit:jar:4.99.9 in central (https://repo.maven.apache.org/maven2) -> [Help 1]\n",
			"Failed to execute goal on project core: Could not resolve dependencies for project ex:core:jar:1: Could not find artifact junit:junit:jar:4.99.9 in central (https://repo.maven.apache.org/maven2)"},
		"Surefire 2": {"Running ex.CoreTest\nTests run: 1, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!\ntwice(ex.CoreTest)  Time elapsed: 0.009 sec  <<< FAILURE!\njava.lang.AssertionError: expected:<4> but was:<6>\n" +
			"\tat org.junit.Assert.fail(Assert.java:89)\n\tat ex.CoreTest.twice(CoreTest.java:5)\n\nResults :\n\nFailed tests:   twice(ex.CoreTest): expected:<4> but was:<6>\n\n" +
			"[ERROR] Failed to execute goal org.apache.maven.plugins:maven-surefire-plugin:2.12.4:test (default-test) on project core: There are test failures.\n", test + ":5: CoreTest.twice: expected:<4> but was:<6>"},
		"Surefire 3": {"[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! -- in ex.CoreTest\n[ERROR] ex.CoreTest.twice -- Time elapsed: 0.009 s <<< FAILURE!\norg.opentest4j.AssertionFailedError: expected: <4> but was: <6>\n" +
			"\tat org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)\n\tat ex.CoreTest.twice(CoreTest.java:5)\n\n[ERROR] Failures: \n[ERROR]   CoreTest.twice:5 expected: <4> but was: <6>\n", test + ":5: CoreTest.twice: expected: <4> but was: <6>"},
		"an exception": {"twice(ex.CoreTest)  Time elapsed: 0.009 sec  <<< ERROR!\njava.lang.IllegalStateException: shut\n\tat ex.Core.twice(Core.java:3)\n\tat ex.CoreTest.twice(CoreTest.java:5)\n", test + ":5: CoreTest.twice: java.lang.IllegalStateException: shut"},
	} {
		if got := decisive.Lines([]byte(c.output+help), tree); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s:\n%q, want\n%q", name, got, c.want)
		}
	}
}
