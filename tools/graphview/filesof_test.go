package graphview

import (
	"slices"
	"strings"
	"testing"
)

func TestTheFilesOfATargetAreThoseOfItsClosedWorkspace(t *testing.T) {
	f := uncoveredFixture(t)
	f.branch("vendored", "more", files{"vendor/README.md": "1\n"})
	var got TargetFiles
	f.read(&got, "targets", "--rev", "more", "--files-of", "shop/mail")
	if !slices.Contains(got.Files, "mail/mail.go") || !slices.Contains(got.Files, "go.mod") || slices.Contains(got.Files, "README.md") {
		t.Errorf("%+v", got)
	}
	if out, err := f.run("targets", "--rev", "more", "--files-of", "shop/mail"); err != nil || !strings.Contains(out, "mail/mail.go\n") {
		t.Errorf("%v\n%s", err, out)
	}
	f.read(&got, "targets", "--rev", "vendored", "--files-of", "shop/mail")
	if !slices.Equal(got.Empty, []string{"vendor/README.md"}) || slices.Contains(got.Files, "vendor/README.md") {
		t.Errorf("%+v", got) // go refuses the module because the folder is there
	}
	for target, want := range map[string]string{"none": "more has no target none", "//:repository": "//:repository depends on every file"} {
		args := []string{"targets", "--rev", "more", "--files-of", target}
		if target == "//:repository" {
			args = append(args, "--adapter", "whole-repository")
		}
		if _, err := f.run(args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
	}
}
