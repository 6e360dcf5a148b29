package builder

import (
	"slices"
	"strings"
	"testing"

	"landfall.build/engine/decisive"
	"landfall.build/platform/journal/memory"
)

func TestAFailedStepNamesItsDecisiveLinesFromTheWholeLog(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	files := scripts(map[string]string{
		// The tail in the event has the noise alone.
		"deep": `cd inner; echo "$PWD/a.c:3:5: error: no such currency"; i=0; while [ $i -lt 4000 ]; do echo "line $i of noise"; i=$((i+1)); done; exit 1`,
		"fine": "echo 'a.c:3:5: error: nothing is wrong'",
	})
	files["deep/inner/a.c"] = "int\n\nint\n"
	base := s.commit("", files)
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//deep:t")...))
	f := s.finished("//deep:t")
	if want := []string{"deep/inner/a.c:3: no such currency"}; !slices.Equal(f.Decisive, want) || strings.Contains(string(f.OutputTail), "currency") {
		t.Errorf("decisive lines %q, want %q", f.Decisive, want)
	}
	s.decide(s.scheduled("b2", base, asked("//fine:t")...))
	if f := s.finished("//fine:t"); len(f.Decisive) > 0 {
		t.Errorf("a step that passed has decisive lines: %q", f.Decisive)
	}
}

// TestAFileOfAMembersFolderIsNamedFromTheRoot: npm run -w, and its like, go to the folder of a workspace's member and do not say so.
func TestAFileOfAMembersFolderIsNamedFromTheRoot(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	say := `mkdir -p node_modules/x/src; echo >node_modules/x/src/only.ts; for f in only both; do echo "src/$f.ts(3,5): error TS2307: no $f"; done; exit 1`
	files := scripts(map[string]string{"web": say})
	for _, f := range []string{"a/src/only.ts", "a/src/both.ts", "b/src/both.ts"} {
		files["web/packages/"+f] = "\n\nlet\n"
	}
	base := s.commit("", files)
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//web:t")...))
	if got, want := s.finished("//web:t").Decisive, []string{"web/packages/a/src/only.ts:3: TS2307: no only", "src/both.ts:3: TS2307: no both"}; !slices.Equal(got, want) {
		t.Errorf("decisive lines %q, want %q", got, want)
	}
}

// TestAFileThatTheOutputDoesNotNameIsFoundInTheTree: npm names no package.json, a shell that reads a script the line behind its end.
func TestAFileThatTheOutputDoesNotNameIsFoundInTheTree(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	files := scripts(map[string]string{
		"npm": "echo 'npm error code ETARGET'; echo 'npm error notarget No matching version found for words@^9.0.0.'; echo 'npm error A complete log of this run can be found in: /x'; exit 1",
		"sql": "echo 'Parse error near line 2: no such table: nobody'; exit 1",
		"uv":  `echo 'error: No solution found when resolving dependencies'; echo '  cause: Because words was not found in the package registry and your project depends on words>=9, we can conclude that none fit.'; exit 1`,
		"ts":  `mkdir out; echo 'throw 1' >out/shelf.test.js; echo 'TypeError: no shelf'; echo "    at open ($PWD/out/shelf.test.js:1:3)"; exit 1`,
		"mod": `echo "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'words' imported from $PWD/src/a.mjs"; echo '    at packageResolve (node:internal/modules/esm/resolve:873:9)'; exit 1`,
		"sum": "echo 'npm error code EINTEGRITY'; echo 'npm error sha512-a== integrity checksum failed when using sha512: wanted sha512-a== but got sha512-b==. (7 bytes)'; exit 1",
		"cut": "echo 'cut/cut.sh: line 2: syntax error: unexpected end of file'; exit 2",
	})
	files["npm/package.json"], files["npm/packages/a/package.json"] = "{}\n", "{\n  \"dependencies\": {\"words\": \"^9.0.0\"}\n}\n"
	files["sql/1.sql"], files["sql/sub/2.sql"] = "create table a (b int);\n", "create table b (c int);\ninsert into nobody values (1);\n"
	files["uv/pyproject.toml"] = "[project]\ndependencies = [\n    \"words >= 9\",\n]\n"
	files["ts/src/shelf.test.ts"], files["mod/src/a.mjs"] = "throw 1\n", "\nimport 'words/far';\n"
	files["sum/package-lock.json"] = "{\"packages\": {\n  \"node_modules/@shop/words\": {\n    \"integrity\": \"sha512-a==\"\n}}}\n"
	files["cut/cut.sh"] = "if true; then\n"
	base := s.commit("", files)
	s.start("a")
	for target, want := range map[string]string{
		"//npm:t": "npm/packages/a/package.json:2: No matching version found for words@^9.0.0.",
		"//sql:t": "sql/sub/2.sql:2: no such table: nobody",
		"//uv:t":  "uv/pyproject.toml:3: Because words was not found in the package registry and your project depends on words>=9, we can conclude that none fit.",
		"//ts:t":  "ts/src/shelf.test.ts: TypeError: no shelf",
		"//mod:t": "mod/src/a.mjs:2: Cannot find package 'words'",
		"//sum:t": "sum/package-lock.json:3: @shop/words: integrity checksum failed when using sha512: wanted sha512-a== but got sha512-b==",
		"//cut:t": "cut/cut.sh:1: syntax error: unexpected end of file",
	} {
		s.decide(s.scheduled(target, base, asked(target)...))
		if got := s.finished(target).Decisive; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: decisive lines %q, want %q", target, got, want)
		}
	}
}

func TestWhatSaysNothingOfAnErrorComesBehindHowTheCommandEnded(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries = 0
	base := s.commit("", scripts(map[string]string{"slow": "echo tick 1; exit 3"}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//slow:t")...))
	if got, want := s.finished("//slow:t").Decisive, []string{"ended with exit code 3: tick 1"}; !slices.Equal(got, want) {
		t.Errorf("decisive lines %q, want %q", got, want)
	}
}

func TestALogThatIsTooLongIsReadFromBothEnds(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.policy.FailedRetries, s.policy.LogLimitBytes = 0, 64<<20
	base := s.commit("", scripts(map[string]string{
		"long": `echo "early.c:1:1: error: first"; head -c 12000000 /dev/zero | tr '\0' x; echo; echo "late.c:2:2: error: last"; exit 1`,
	}))
	s.start("a")
	s.decide(s.scheduled("b1", base, asked("//long:t")...))
	if f := s.finished("//long:t"); len(f.Decisive) != 2 || len(f.Decisive[0]) > decisive.MaxBytes {
		t.Errorf("decisive lines %q", f.Decisive)
	}
}

func TestAPreparationNamesWhatDependsOnWhatAndADependencyRunsFirst(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", map[string]string{
		"landfall.yaml": `targets:
  - {name: a, deps: [":between"], sources: [a], steps: [{name: check, run: [sh, -c, "echo a >>$OUTSIDE/order"]}]}
  - {name: between, deps: [":z"], sources: [b]}
  - {name: z, sources: [z], steps: [{name: check, run: [sh, -c, "echo z >>$OUTSIDE/order"]}]}
`, "a": "a", "b": "b", "z": "z"})
	one := s.config.Queues[queueName]
	one.Workers = 1
	s.config.Queues[queueName] = one
	s.start("a", func(o *Options) { o.Workers = 1 })
	s.decide(s.scheduled("b1", base, asked("//:a", "//:z")...))
	p := s.prepared("b1")
	if len(p.Needs) != 2 || !slices.Equal(p.Needs[0].Versions, []uint32{1}) || len(p.Needs[1].Versions) != 0 {
		t.Errorf("needs %v", p.Needs)
	}
	s.finished("//:z")
	s.finished("//:a")
	if got := s.appears("order"); got != "z\na\n" {
		t.Errorf("steps ran in the order %q", got)
	}
}

func TestAPreparationNamesTheOwnersThatTheMainlineHas(t *testing.T) {
	s := newSite(t, memory.Options{})
	base := s.commit("", map[string]string{
		"CODEOWNERS": "a @ada\nb @bob\n",
		"landfall.yaml": `targets:
  - {name: a, sources: [a], steps: [{name: check, run: ["true"]}]}
  - {name: b, sources: [b], steps: [{name: check, run: ["true"]}]}
  - {name: c, sources: [a], steps: [{name: check, run: ["true"]}]}
  - {name: trivial, sources: [a]}
  - {name: none, sources: [c], steps: [{name: check, run: ["true"]}]}
`, "a": "a", "b": "b", "c": "c"})
	head := s.commit(base, map[string]string{"CODEOWNERS": "* @mallory\n"})
	s.start("a")
	b := s.scheduled("b1", base, asked("//:a", "//:b", "//:c", "//:trivial", "//:none", "//:gone")...)
	b.Change = change("C", pick(base, head))
	s.decide(b)
	p := s.prepared("b1")
	if len(p.Owned) != 2 || !slices.Equal(p.Owned[0].Owners, []string{"@ada"}) || !slices.Equal(p.Owned[0].Versions, []uint32{0, 2}) ||
		!slices.Equal(p.Owned[1].Owners, []string{"@bob"}) || !slices.Equal(p.Owned[1].Versions, []uint32{1}) {
		t.Errorf("owned %v", p.Owned)
	}
}
