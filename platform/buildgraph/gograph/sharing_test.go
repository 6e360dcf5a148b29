package gograph

import (
	"slices"
	"strings"
	"testing"
)

// TestNoCacheIsSharedWhereGoDoesNotHashWhatIsIncluded nor by what is linked with it; steps of all else share one.
func TestNoCacheIsSharedWhereGoDoesNotHashWhatIsIncluded(t *testing.T) {
	assembly := func(include string) memoryTree {
		return memoryTree{"p/p_amd64.s": "#include \"textflag.h\"\n#include " + include + "\n"}
	}
	cgo := func(preamble string) memoryTree {
		return memoryTree{"p/c.go": "package p\n\n// " + strings.ReplaceAll(preamble, "\n", "\n// ") + "\nimport \"C\"\n"}
	}
	base := memoryTree{
		"go.mod": "module m\n\ngo 1.26\n", "inc/x.h": "\n", "lib/x.a": "\n", "p/p.go": "package p\n", "p/p_test.go": "package p\n",
		"p/own.h": "\n", "p/sub/x.h": "\n", "p/table.inc": "\n", "p/x_arm64.h": "\n", "p/never.h": "//go:build never\n", "p/link.h": "mode 120000 ../inc/x.h",
		"q/q.go": "package q\n\nimport _ \"m/p\"\n", "r/r_test.go": "package r\n\nimport _ \"m/q\"\n", "other/o.go": "package other\n",
	}
	options := Options{Env: []string{"GOCACHE=/elsewhere", "GOOS=linux"}, Commands: Commands{
		Library: []Template{{Name: "build", Argv: []string{"go", "build", "{dir}"}}}, Test: []Template{{Name: "test", Argv: []string{"go", "test", "{dir}"}}},
	}}
	for name, c := range map[string]struct {
		edit  memoryTree
		alone bool
	}{
		"no C":                           {memoryTree{}, false},
		"a header of its own":            {assembly(`"own.h"`), false},
		"a header of the system":         {assembly(`<stdio.h>`), false},
		"cgo with a header of its own":   {cgo("#cgo CFLAGS: -I. -I${SRCDIR} -DX=1\n#include \"own.h\""), false},
		"a header elsewhere":             {assembly(`"../inc/x.h"`), true},
		"a header below":                 {assembly(`"sub/x.h"`), true},
		"a header by a header":           {assembly(`"chain.h"`).with(memoryTree{"p/chain.h": "#include \"../inc/x.h\"\n"}), true},
		"a file that is no header":       {assembly(`"table.inc"`), true},
		"a header of another platform":   {assembly(`"x_arm64.h"`), true},
		"a header with a constraint":     {assembly(`"never.h"`), true},
		"a link":                         {assembly(`"link.h"`), true},
		"a name that a macro makes":      {assembly(`NAME`), true},
		"cgo with a folder of headers":   {cgo("#cgo CFLAGS: -I../inc\n#include <x.h>"), true},
		"cgo with a library":             {cgo("#cgo LDFLAGS: -L../lib -lx"), true},
		"cgo with a library by its file": {cgo("#cgo LDFLAGS: ${SRCDIR}/../lib/x.a"), true},
		"what the assembler includes":    {cgo("__asm__(\".incbin \\\"own.h\\\"\");"), true},
	} {
		graph := loadWith(t, options, base.with(c.edit))
		for _, target := range []string{"m/p", "m/p [test]", "m/q", "m/r [test]", "m/other"} {
			found, ok := graph.Target(target)
			if !ok || len(found.Commands) != 1 {
				t.Fatalf("%s: %s has %d commands", name, target, len(found.Commands))
			}
			want := []string{"GOCACHE=/elsewhere", "GOOS=linux"}
			if c.alone && target != "m/other" {
				want = []string{"GOCACHE=", "GOOS=linux", "XDG_CACHE_HOME="}
			}
			if got := found.Commands[0].Env; !slices.Equal(got, want) {
				t.Errorf("%s: %s has %q, want %q", name, target, got, want)
			}
		}
	}
}
