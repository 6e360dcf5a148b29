package groups

import (
	"encoding/json"
	"io"
	"strings"
)

// Output takes what a tool prints: of one target, or of none in particular ("").
type Output func(label string, text []byte)

// Bounds on what is kept of the output of packages that are built for others.
const (
	mostBuilds     = 4096
	mostBuildBytes = 64 << 10
	// mostKept bounds all of it, in bytes, with the paths of the packages.
	mostKept = 32 << 20
)

// goEvent is a line of "go test -json" and "go build -json"; see "go doc test2json" and "go help buildjson".
type goEvent struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
}

// GoTests returns a writer for the output of go test -json. Labels are import paths. The go command itself decides whether a
// package has passed, by how the package's process ended: what a test prints does not.
func GoTests(t *Tally, out Output) io.Writer {
	g := &goEvents{tally: t, out: out, builds: map[string][]byte{}, collides: map[string]bool{}}
	return &lines{each: g.line}
}

// GoBuilds returns a writer for the output of go build -json, which says nothing of what it has built.
func GoBuilds(t *Tally, out Output) io.Writer {
	g := &goEvents{tally: t, out: out, building: true, builds: map[string][]byte{}, collides: map[string]bool{}}
	return &lines{each: g.line}
}

type goEvents struct {
	tally    *Tally
	out      Output
	building bool
	// collides holds the import paths that the go command does not build together with another one that differs in the case of
	// letters alone. By itself each may build, so nothing is known of it.
	collides map[string]bool
	// builds has what was printed while a package was built, by import path.
	builds map[string][]byte
	// kept is how much collides and builds have, in bytes.
	kept int
}

// keep reports whether so many bytes more may be kept.
func (g *goEvents) keep(bytes int) bool {
	if g.kept+bytes > mostKept {
		return false
	}
	g.kept += bytes
	return true
}

func (g *goEvents) line(line []byte) {
	var e goEvent
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &e) != nil || e.Action == "" {
		g.out("", append(line, '\n'))
		return
	}
	switch e.Action {
	case "build-output":
		if strings.HasPrefix(e.Output, "case-insensitive import collision: ") && !g.collides[e.ImportPath] && len(g.collides) < mostBuilds && g.keep(len(e.ImportPath)) {
			g.collides[e.ImportPath] = true
		}
		had, known := g.builds[e.ImportPath]
		more := e.Output[:min(len(e.Output), mostBuildBytes-len(had))]
		if known && g.keep(len(more)) || !known && len(g.builds) < mostBuilds && g.keep(len(e.ImportPath)+len(more)) {
			g.builds[e.ImportPath] = append(had, more...)
		}
		if g.tally.Asked(e.ImportPath) {
			g.out(e.ImportPath, []byte(e.Output))
		} else {
			g.out("", []byte(e.Output))
		}
	case "build-fail":
		if g.building && g.tally.Asked(e.ImportPath) && !g.collides[e.ImportPath] {
			g.tally.Report(e.ImportPath, Failed)
		}
	case "output":
		g.out(e.Package, []byte(e.Output))
	case "pass", "skip", "fail":
		g.ended(e)
	}
}

// ended takes the end of a test, or of a package. A package is skipped if it has no tests, which go test alone passes too.
func (g *goEvents) ended(e goEvent) {
	if e.Test != "" || e.Package == "" {
		return
	}
	if e.Action != "fail" {
		g.tally.Report(e.Package, Passed)
		return
	}
	if g.collides[e.FailedBuild] {
		return
	}
	if text := g.builds[e.FailedBuild]; len(text) > 0 && e.FailedBuild != e.Package {
		g.out(e.Package, text)
	}
	g.tally.Report(e.Package, Failed)
}
