package manifest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// one returns a repository with one manifest, in the folder lib.
func one(manifest string) memoryTree {
	return memoryTree{"lib/landfall.yaml": manifest, "lib/a.go": "package lib\n", "lib/sub/b.go": "package sub\n"}
}

func TestEveryMistakeIsNamedWithFileLineAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		tree memoryTree
		want []string // each "file:line" or "file" and a part of the message
	}{
		"bad YAML":             {one("targets:\n  - name: [a"), []string{"lib/landfall.yaml:2: a [ or { is not closed"}},
		"unknown field":        {one("targets:\n- name: a\n  source: [x]"), []string{`lib/landfall.yaml:3: unknown field "source" in a target; known are name, kind, sources`}},
		"unknown top field":    {one("target:\n- name: a"), []string{`lib/landfall.yaml:1: unknown field "target" in the file; known are targets`}},
		"unknown step field":   {one("targets:\n- name: a\n  steps: [{name: x, run: [y], shell: z}]"), []string{`:3: unknown field "shell" in a step`}},
		"field twice":          {one("targets:\n- name: a\n  kind: x\n  kind: y"), []string{`:4: "kind" appears twice`}},
		"unknown dependency":   {one("targets:\n- name: a\n  deps:\n  - :b\n  - //x:y"), []string{`:4: //lib:a depends on "//lib:b", which no`, `:5: //lib:a depends on "//x:y"`}},
		"dependency no label":  {one("targets:\n- name: a\n  deps: [b, //, //x//y, ../c, //a:b:c, //.]"), []string{`"b" is not a label`, `"//" names no target`, `"//x//y" has no valid folder`, `"../c" is not a label`, `"//a:b:c" names no target`, `"//." names no target`}},
		"duplicate target":     {one("targets:\n- name: a\n- name: b\n- name: a"), []string{`lib/landfall.yaml:4: target //lib:a is already defined at lib/landfall.yaml:2; rename one`}},
		"cycle":                {one("targets:\n- name: a\n  deps: [:b]\n- name: b\n  deps: [:c]\n- name: c\n  deps: [:b]"), []string{`:4: targets depend on themselves: //lib:b → //lib:c → //lib:b; remove one`}},
		"self":                 {one("targets:\n- name: a\n  deps: [:a]"), []string{`//lib:a → //lib:a`}},
		"glob out of the root": {one("targets:\n- name: a\n  sources: ['../../x', '../x', '/etc/passwd', 'a/**b']"), []string{`:3: sources "../../x" leads out of the repository`, `"/etc/passwd" is absolute`, `"a/**b" has ** next to`}},
		"other patterns":       {one("targets:\n- name: a\n  sources: ['', 'sub/', '[a', '*/../x', 'a\\b', '..']"), []string{`"" is empty`, `"sub/" names a folder`, `"[a" is not a valid pattern`, `"*/../x" has .. after a pattern`, `holds a backslash`, `".." names a folder`}},
		"folder as source":     {one("targets:\n- name: a\n  sources:\n  - sub"), []string{`:4: source lib/sub of //lib:a is a folder; write lib/sub/** for`}},
		"no name":              {one("targets:\n- kind: a"), []string{`:2: a target has no name`}},
		"bad name":             {one("targets:\n- name: a/b\n- name: ''\n- name: -x"), []string{`:2: "a/b" is not a target name`, `:3: "" is not a target name`, `:4: "-x" is no`}},
		"reserved name":        {memoryTree{"landfall.yaml": "targets: [{name: repository}]"}, []string{`//:repository is taken`}},
		"shell string":         {one("targets:\n- name: a\n  steps:\n  - name: x\n    run: go test ./..."), []string{`:5: run must be a list of program and arguments, as no shell reads it`}},
		"nothing to run":       {one("targets:\n- name: a\n  steps:\n  - name: x\n  - run: [y]\n  - name: z\n    run: ['']"), []string{`:4: a step has nothing to run`, `:5: a step has no name`, `the program to run is empty`}},
		"steps named alike":    {one("targets:\n- name: a\n  steps: [{name: x, run: [y]}, {name: x, run: [z]}]"), []string{`two steps of a target are named`}},
		"bad dir":              {one("targets:\n- name: a\n  steps: [{name: x, run: [y], dir: ../z}, {name: w, run: [y], dir: /z}]"), []string{`dir "../z" is not a folder`, `dir "/z" is not`}},
		"bad timeout":          {one("targets:\n- name: a\n  steps: [{name: x, run: [y], timeout: 30}, {name: w, run: [y], timeout: -1s}]"), []string{`timeout "30" is not a duration`, `timeout "-1s"`}},
		"not a list":           {one("targets: {a: b}"), []string{`:1: targets of the file must be a list, such as [a, b], not a mapping`}},
		"not a text":           {one("targets:\n- name: a\n  sources:\n  - {a: b}\n  -"), []string{`:4: sources of a target must hold texts, not a mapping`, `:5: sources of a target must hold texts, not nothing`}},
		"not a mapping":        {one("- a"), []string{`:1: the file must be a mapping (key: value), not a list`}},
		"root settings below":  {one("environment: {A: b}\ninputs: [x]\ntargets: [{name: a}]"), []string{`:1: environment holds for the whole repository; move it to the root's landfall.yaml`, `:2: inputs`}},
		"platform's variable":  {memoryTree{"landfall.yaml": "environment: {LANDFALL_STEP: x}\ntargets: [{name: a}]"}, []string{`LANDFALL_STEP has a name that begins with LANDFALL_, as those do that the builder sets`}},
		"bad resources":        {one("targets: [{name: a, steps: [{name: b, run: [c], exclusive: [D], resources: {memory_gb: 0, Gpu: 1, x: 1.5}}]}]"), []string{`"D" in exclusive is not a name`, `"0" of "memory_gb" is not an amount`, `"Gpu" in resources is not a name`, `"1.5" of "x" is not an amount`}},
		"bad owners":           {one("owners: '@a'\ntargets:\n- name: a\n  owners: [b c, '']\n- name: d\n  owners: [" + strings.Repeat("x,", 21) + "]"), []string{`:1: owners of the file must be a list`, `:4: owner "b c" is not a name; write one such as @ada`, `:4: owner "" is not`, `:6: owners of a target are more than 20; name a team`}},
		"bad secret":           {one("targets: [{name: a, steps: [{name: b, run: [c], secrets: [A-B]}]}]"), []string{`"A-B" in secrets is not the name of a variable`}},
		"bad group": {one("targets:\n- name: a\n  steps: [{name: b, run: [c], group_results: junit}]\n- name: d\n  steps: [{name: b, run: [c], group: [x], group_results: xml}]"), []string{
			`:3: group_results stands without a group; add group`, `:5: group_results "xml" is none of lines and junit`}},
		"bad outputs": {one("targets:\n- name: a\n  steps: [{name: b, run: [c], outputs: [/etc/x, ../x, '', ., '*.o', 'x\\y', .git/config]}]\n- name: b\n  steps: [{name: b, run: [c], outputs: out}, {name: d, run: [c], outputs: [o], group: [x]}]"), []string{
			`:3: output "/etc/x" is not below`, `output "../x" is not below`, `output "" is not below`, `output "." is not below`, `output "*.o" is a pattern`,
			`output "x\\y" is no path`, `output ".git/config" is no path`, `:5: outputs of a step must be a list`, `:5: a step with a group leaves no outputs`}},
		"outputs with secrets": {one("targets:\n- name: a\n  steps: [{name: b, run: [c], outputs: [out]}, {name: d, run: [c], secrets: [TOKEN]}]"), []string{`:2: a target with secrets leaves no outputs`}},
		"outputs in one place": {one("targets:\n- name: a\n  steps: [{name: b, run: [c], outputs: [out, bin/x]}]\n- name: b\n  steps: [{name: b, run: [c], outputs: [./out, bin/x/y]}]"), []string{
			`:4: output "lib/out" of //lib:b is one of //lib:a too`, `:4: output "lib/bin/x/y" of //lib:b lies in output "lib/bin/x" of //lib:a`}},
		"outputs where files are": {one("targets:\n- name: a\n  steps: [{name: b, run: [c], outputs: [a.go, sub, sub/b.go/c]}]"), []string{
			`:2: output "lib/a.go" of //lib:a is a file of the repository`, `output "lib/sub" of //lib:a is a folder with files`, `output "lib/sub/b.go/c" of //lib:a lies below "lib/sub/b.go", which is a file`}},
		"bad services": {one("targets:\n- name: a\n  steps:\n  - name: b\n    run: [c]\n    services:\n    - {name: x}\n    - {name: 1, run: [x]}\n    - {name: y, run: [x], ready: udp}\n    - {name: z, run: [x], ready: {http: healthz}}\n    - {name: z, run: [x], port_variable: PATH, ready: {command: []}}"), []string{
			`:7: a service has nothing to run`, `:8: "1_PORT" cannot be the variable of a port`, `:9: ready is tcp, {http: /path}`, `:10: "healthz" is not a path`,
			`:11: "PATH" cannot be the variable`, `:11: the command of ready has no program`, `:11: two services of a step are named "z"`}},
		"bad image":          {one("targets: [{name: a, steps: [{name: b, run: [c], image: 'golang:1.26'}]}]"), []string{`"golang:1.26" is not an image with its digest`}},
		"bad cache":          {memoryTree{"landfall.yaml": "caches: go\ntargets: [{name: a, steps: [{name: b, run: [c], caches: [Go]}]}]"}, []string{`:1: caches of the file must be a list`, `:2: "Go" in caches is not a name`}},
		"bad environment":    {memoryTree{"landfall.yaml": "environment: {A-B: c, D: [e], F:}\ntargets: [{name: a}]"}, []string{`"A-B" is not the name of an environment variable`, `D of environment must be a text, a number, true or false, not a list`, `F of environment must be a text, a number, true or false, not nothing`}},
		"too large":          {one("#" + strings.Repeat("x", maxFileBytes)), []string{"lib/landfall.yaml: is larger than 1 MiB; split it"}},
		"symbolic link":      {one("mode 120000"), []string{"lib/landfall.yaml: is a symbolic link or submodule"}},
		"no targets":         {one("targets: []"), []string{"lib/landfall.yaml: no manifest of the repository defines a target"}},
		"folder of odd name": {memoryTree{"a:b/landfall.yaml": "targets: [{name: x}]"}, []string{"a:b/landfall.yaml: the folder's name cannot be part"}},
		"in several files":   {memoryTree{"a/landfall.yaml": "x: y", "b/landfall.yaml": "z: [", "c/landfall.yaml": "targets: [{name: ok}]"}, []string{"a/landfall.yaml:1: ", "b/landfall.yaml:1: "}},
	} {
		_, err := Load(t.Context(), c.tree)
		var invalid *Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%s: got %v, want *Invalid", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got\n%v\nwant %s", name, err, want)
			}
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	tree := memoryTree{}
	for i := range 50 {
		tree[fmt.Sprintf("d%02d/landfall.yaml", i)] = strings.Repeat("targets: x\n", 50)
	}
	_, err := Load(t.Context(), tree)
	var invalid *Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != maxProblems || invalid.More < 30 {
		t.Fatalf("got %v", err)
	}
	if first := invalid.Problems[0]; first.File != "d00/landfall.yaml" || first.Line != 2 {
		t.Errorf("first problem %v", first)
	}
}

func TestARepositoryWithoutManifestsIsToldApart(t *testing.T) {
	if _, err := Load(t.Context(), memoryTree{"a/b": "c"}); !errors.Is(err, ErrNoManifest) {
		t.Errorf("got %v", err)
	}
	if _, err := Load(t.Context(), memoryTree{}); !errors.Is(err, ErrNoManifest) {
		t.Errorf("empty tree: got %v", err)
	}
}

// brokenTree cannot be read.
type brokenTree struct{ memoryTree }

var errOffline = errors.New("offline")

func (brokenTree) Blob(context.Context, string, int64) ([]byte, error) { return nil, errOffline }

func TestATreeThatCannotBeReadIsNotAnInvalidOne(t *testing.T) {
	_, err := Load(t.Context(), brokenTree{sample})
	var invalid *Invalid
	if !errors.Is(err, errOffline) || errors.As(err, &invalid) {
		t.Errorf("got %v", err)
	}
	loader := NewLoader(Memory{})
	if _, err := loader.Load(t.Context(), sample.id(), brokenTree{sample}); err == nil {
		t.Error("loaded without reading")
	}
	if _, err := loader.Load(t.Context(), sample.id(), sample); err != nil {
		t.Errorf("the failure was remembered: %v", err)
	}
}

func TestACanceledLoadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Load(ctx, sample); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
