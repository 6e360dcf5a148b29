package pathkind_test

import (
	"testing"

	"landfall.build/engine/pathkind"
)

func TestAPathSaysWhatAFileIs(t *testing.T) {
	for path, want := range map[string]pathkind.Kind{
		"cmd/main.go": pathkind.Source, "a/b_test.go": pathkind.Test, "src/test/java/X.java": pathkind.Test, "src/UserTest.kt": pathkind.Test, "docs/a.md": pathkind.Doc,
		"go.mod": pathkind.Build, "lib/BUILD.bazel": pathkind.Build, "go.sum": pathkind.Lock, "web/yarn.lock": pathkind.Lock, ".github/workflows/ci.yml": pathkind.CI,
		"Jenkinsfile": pathkind.CI, "app/settings.yaml": pathkind.Configuration, "LICENSE": pathkind.Other, "": pathkind.Other, "contest.go": pathkind.Source,
	} {
		if got := pathkind.Of(path); got != want {
			t.Errorf("%q is of kind %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]bool{"events/v1/a.pb.go": true, "vendor/x/y.go": true, "a/b.go": false, "vendors/a.go": false} {
		if got := pathkind.Generated(path); got != want {
			t.Errorf("%q is generated: %v", path, got)
		}
	}
}
