package adopt

import (
	"context"
	"slices"
	"testing"

	"landfall.build/events/seedtest"
	"landfall.build/platform/configuration"
)

// TestTextsAreReadAsTheyAreWritten holds for whatever a path, an argument or a branch may be.
func TestTextsAreReadAsTheyAreWritten(t *testing.T) {
	random := seedtest.Random(t)
	pieces := []string{"a", "Z", "0", ".", "-", ":", " ", "#", "'", `"`, "\\", "~", "&", "*", "!", "%", "@", "`", "{", "]", ",", "=", "yes", "null", "é", "<", "1e3", "|", ">", "?"}
	for range 2000 {
		words := []string{"x"}
		for range 3 {
			word := ""
			for range 1 + random.IntN(5) {
				word += pieces[random.IntN(len(pieces))]
			}
			words = append(words, word)
		}
		p := plan{place: place{URL: "/r.git", Branch: "main", Name: "shop"}, Queue: "shop", Data: "/data", Workers: 1, env: environment{path: "/bin"},
			whole: []configuration.Step{{Name: "a", Run: words}}}
		p.env.settings = []variable{{"A", words[1]}}
		c, err := p.configuration()
		if err != nil {
			t.Fatalf("%q: %v", words, err)
		}
		queue := c.Queues["shop"]
		if got := queue.Analysis.WholeRepositorySteps[0].Run; !slices.Equal(got, words) || queue.Steps.Environment.Variables["A"] != words[1] {
			t.Fatalf("%q is read as %q and %q", words, got, queue.Steps.Environment.Variables["A"])
		}
	}
}

func TestAQueueIsNamedAfterItsRepository(t *testing.T) {
	for address, want := range map[string]string{
		"/srv/git/Shop.git": "shop", "git@git.example.com:shop.git": "shop", "ssh://git@git.example.com/a/My Shop/": "my-shop", "/": "main", "https://git.example.com/a/b": "b",
	} {
		if got := queueName(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

func TestTheProgramsOfALineAreFound(t *testing.T) {
	for line, want := range map[string][]string{
		"npm ci && npm run test":                       {"npm", "node", "npm", "node"},
		"cd web && make test; cargo test":              {"make", "cargo"},
		"./gradlew check":                              nil,
		"python3 -m venv .venv && .venv/bin/pip x | b": {"python3", "b"},
		"A=1 b": nil,
	} {
		if got := programsOf(line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestAPasswordInASettingIsNotCopied(t *testing.T) {
	var e environment
	e.set("PIP_INDEX_URL", "https://ada:secret@pip.example.com/simple", "pip's configuration")
	e.set("GOPROXY", "https://go.example.com,direct", "`go env`")
	e.set("GOPROXY", "off", "another place")
	if len(e.settings) != 1 || e.settings[0] != (variable{"GOPROXY", "https://go.example.com,direct"}) || len(e.notes) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestStepsFindToolsWhereTheUserDoes(t *testing.T) {
	m := machine{folders: []string{"/opt/b", "/usr/bin", "/opt/a", "/opt/unused"}, Tools: map[string]tool{
		"a": {Path: "/opt/a/a"}, "b": {Path: "/opt/b/b"}, "git": {Path: "/usr/bin/git"}, "missing": {},
	}}
	if got, want := m.pathOfSteps(), "/opt/b:/opt/a:/usr/local/bin:/usr/bin:/bin"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWhatAMakefileBuildsIsBuilt: a program that no test uses could land and not compile.
func TestWhatAMakefileBuildsIsBuilt(t *testing.T) {
	for text, want := range map[string]string{
		"all: shop\nshop: a.o\n\tcc $^\ntest: b\n":                  "make all && make test",
		".PHONY: all test\nlint:\nbuild:\ncheck:\ntest:\n":          "make build && make check",
		"all: shop\ntest: all\n":                                    "make test",
		"shop: a.o\n\tcc $^\ntest:\n":                               "make shop && make test",
		".PHONY: help test # and more\nhelp:\n\techo help\ntest:\n": "make test",
		"X := 1\n.SUFFIXES:\ntest: a\n\ttrue\n":                     "make test",
		"all:\n":                                                    "make",
		"":                                                          "make",
	} {
		r := reader{t.Context(), nil, func(context.Context, string) string { return text }}
		if got := makeCommand(r, ".", "Makefile"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestThePastIsToldByItsNumber(t *testing.T) {
	for want, p := range map[string]pastConflicts{
		"The last commit of the mainline would not have conflicted with everything.":             {Commits: 1},
		"The last commit of the mainline would have conflicted with everything:":                 {Commits: 1, All: 1},
		"Of the last 2 commits of the mainline none would have conflicted with everything.":      {Commits: 2},
		"Of the last 200 commits of the mainline 3 (2 %) would have conflicted with everything:": {Commits: 200, All: 3},
	} {
		if got := p.inWords(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
