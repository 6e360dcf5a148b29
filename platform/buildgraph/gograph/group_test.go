package gograph

import (
	"strings"
	"testing"

	"landfall.build/engine/targets"
)

func TestPackagesGoTogetherWhereTheGoCommandTakesSeveral(t *testing.T) {
	for _, c := range []struct{ template, group string }{
		{"go test {dir}", "go test -json"},
		{"go test -race -count=1 {dir}", "go test -json -race -count=1"},
		{"go build -o /dev/null {dir}", "go build -json -o /dev/null"},
		{"go build -o /dev/null -tags=x {dir}", "go build -json -o /dev/null -tags=x"},
		// What would leave a program, write one file for all, or means something else.
		{"go build {dir}", ""}, {"go build -o out {dir}", ""}, {"go test -c {dir}", ""}, {"go test -o x {dir}", ""}, {"go test -json {dir}", ""},
		{"go test -coverprofile=c.out {dir}", ""}, {"go test --cpuprofile=c {dir}", ""}, {"go test -exec=wrap {dir}", ""}, {"go test -n {dir}", ""},
		{"go test -fuzz=. {dir}", ""}, {"go test -args {dir}", ""}, {"go test {dir} -v", ""}, {"go test -run X {dir}", ""}, {"go test ./other {dir}", ""},
		{"go test {import}", ""}, {"go vet {dir}", ""}, {"sh -c {dir}", ""}, {"go list -m all", ""}, {"/usr/bin/go test {dir}", ""}, {"go test", ""}, {"go", ""},
		{"go test -run={import} {dir}", ""},
	} {
		g := groupOf(strings.Fields(c.template), site{dir: "./a", importPath: "x/a"})
		switch {
		case g == nil && c.group != "":
			t.Errorf("%s: no group", c.template)
		case g != nil && (strings.Join(g.Argv, " ") != c.group || g.Member != "./a" || g.Label != "x/a"):
			t.Errorf("%s: %+v", c.template, g)
		}
	}
	if g := groupOf([]string{"go", "build", "-o", "/dev/null", "{dir}"}, site{dir: "."}); g.Results != targets.GoBuild {
		t.Error(g.Results)
	}
}
