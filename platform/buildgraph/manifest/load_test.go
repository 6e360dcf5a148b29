package manifest

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"landfall.build/engine/targets"
)

// sample is a small repository with every field in use.
var sample = memoryTree{
	"landfall.yaml": `
environment:
  GOFLAGS: -mod=mod
  CGO_ENABLED: 0
inputs: [go.mod, "tools/**"]
targets:
  - name: all
    kind: test
    deps: [//lib, "//app:app"]
    steps:
      - name: vet
        run: [go, vet, ./...]
`,
	"go.mod":          "module sample\n",
	"tools/check.sh":  "exit 0\n",
	"README.md":       "sample\n",
	"lib/a.go":        "package lib\n",
	"lib/a_test.go":   "package lib\n",
	"lib/notes.txt":   "notes\n",
	"lib/testdata/in": "1\n",
	"lib/landfall.yaml": `
targets:
  - name: lib
    sources: ["*.go"]
    exclude: ["*_test.go"]
    steps:
      - name: build
        run: [go, build, ./lib]
  - name: test
    kind: test
    sources: ["*_test.go", "testdata/**"]
    deps: [":lib"]
    steps:
      - name: test
        run: [go, test, .]
        dir: lib
        timeout: 30s
`,
	"app/main.go": "package main\n",
	"app/landfall.yaml": `
targets:
  - name: app
    kind: binary
    sources: [main.go]
    deps: [//lib:lib]
    steps: [{name: build, run: [go, build, -o, /dev/null, ./app]}]
`,
}

// lib/notes.txt is no source; the manifests are nobody's source and are read all the same.
func TestAFileIsUncoveredWhereNoTargetHasItAsASource(t *testing.T) {
	if got, want := mustLoad(t, sample).Uncovered(), []string{"README.md", "lib/notes.txt"}; !slices.Equal(got, want) {
		t.Errorf("uncovered: %q, want %q", got, want)
	}
}

func TestATargetSaysHowItIsVerified(t *testing.T) {
	graph := mustLoad(t, sample)
	got, ok := graph.Target("//lib:test")
	if !ok {
		t.Fatal("no //lib:test")
	}
	want := []targets.Command{{
		Name: "test", Argv: []string{"go", "test", "."}, Dir: "lib", Timeout: 30 * time.Second,
		Env: []string{"CGO_ENABLED=0", "GOFLAGS=-mod=mod"},
	}}
	if got.Kind != "test" || !slices.Equal(got.Deps, []string{"//lib"}) || !reflect.DeepEqual(got.Commands, want) {
		t.Errorf("got %+v, want commands %+v", got, want)
	}
	var names []string
	for target := range graph.Targets() {
		names = append(names, target.Name)
	}
	if want := []string{"//:all", "//app", "//lib", "//lib:test"}; !slices.Equal(names, want) {
		t.Errorf("targets %v, want %v", names, want)
	}
}

func TestAStepIsGivenItsOwnCachesAndThoseOfTheRepository(t *testing.T) {
	graph := mustLoad(t, memoryTree{
		"landfall.yaml":   "caches: [npm, go-build]\ntargets: [{name: all, steps: [{name: a, run: [x]}]}]\n",
		"b/landfall.yaml": "targets: [{name: b, steps: [{name: a, run: [x], caches: [zig, npm, ccache, zig]}]}]\n",
	})
	for name, want := range map[string][]string{"//:all": {"go-build", "npm"}, "//b": {"ccache", "go-build", "npm", "zig"}} {
		target, _ := graph.Target(name)
		if got := target.Commands[0].Needs.Caches; !slices.Equal(got, want) {
			t.Errorf("%s: caches %q, want %q", name, got, want)
		}
	}
}

func TestAServiceIsReadyWhenItsPortAnswersUnlessItSaysMore(t *testing.T) {
	graph := mustLoad(t, memoryTree{"landfall.yaml": `targets:
  - name: all
    steps:
      - name: a
        run: [x]
        services:
          - {name: test-db, run: [db, --quiet], dir: tools}
          - {name: web, run: [web], ready: {http: /healthz}, port_variable: HTTP, timeout: 5s}
          - {name: queue, run: [q], ready: {command: [q, ping]}}
          - {name: mail, run: [m], ready: tcp}
`})
	target, _ := graph.Target("//:all")
	want := []targets.Service{
		{Name: "test-db", Argv: []string{"db", "--quiet"}, Dir: "tools", PortVariable: "TEST_DB_PORT"},
		{Name: "web", Argv: []string{"web"}, HTTP: "/healthz", PortVariable: "HTTP", Timeout: 5 * time.Second},
		{Name: "queue", Argv: []string{"q"}, Probe: []string{"q", "ping"}, PortVariable: "QUEUE_PORT"},
		{Name: "mail", Argv: []string{"m"}, PortVariable: "MAIL_PORT"},
	}
	if got := target.Commands[0].Needs.Services; !reflect.DeepEqual(got, want) {
		t.Errorf("services %+v, want %+v", got, want)
	}
}
