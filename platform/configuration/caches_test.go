package configuration

import (
	"slices"
	"testing"
)

func TestStepsHaveTheCachesOfTheToolsThatAdaptersCall(t *testing.T) {
	for _, c := range []struct {
		adapters []Adapter
		want     []string
	}{
		{nil, nil},
		{[]Adapter{AdapterManifest}, nil},
		{[]Adapter{AdapterNode}, []string{"npm", "pnpm", "yarn", "bun"}},
		{[]Adapter{AdapterPython}, []string{"pip", "uv", "poetry"}},
		{[]Adapter{AdapterGo, AdapterManifest, AdapterCargo}, []string{"go-build", "go-mod", "cargo"}},
	} {
		queue := NewQueue("main", Defaults{Workers: 1})
		for _, adapter := range c.adapters {
			queue.Analysis.Adapters = append(queue.Analysis.Adapters, AdapterUse{Adapter: adapter})
		}
		got := queue.CachesOf()
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.adapters, got, c.want)
		}
		for _, name := range got {
			if _, known := queue.Steps.Cache(name); !known {
				t.Errorf("%s is no cache", name)
			}
		}
	}
}

func TestAFolderThatAVariableNamesIsOpenIfStepsCanWriteToIt(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		want  []OpenCache
	}{
		"a folder to write to":       {`{write: [/srv/uv], environment: {variables: {UV_CACHE_DIR: /srv/uv}}}`, []OpenCache{{"UV_CACHE_DIR", "/srv/uv", "uv"}}},
		"one below it":               {`{write: [/srv], environment: {variables: {npm_config_store_dir: /srv/pnpm, GOCACHE: /srv/go}}}`, []OpenCache{{"GOCACHE", "/srv/go", "go-build"}, {"npm_config_store_dir", "/srv/pnpm", "pnpm"}}},
		"one beside it":              {`{write: [/srv/uv], environment: {variables: {UV_CACHE_DIR: /srv/uv2}}}`, nil},
		"a folder to read":           {`{read: [/srv/mod], environment: {variables: {GOMODCACHE: /srv/mod}}}`, nil},
		"no isolation":               {`{isolation: "off", environment: {variables: {POETRY_CACHE_DIR: /srv/poetry}}}`, []OpenCache{{"POETRY_CACHE_DIR", "/srv/poetry", "poetry"}}},
		"a word":                     {`{isolation: "off", environment: {variables: {GOCACHE: "off"}}}`, nil},
		"a variable of another kind": {`{write: [/srv], environment: {variables: {CERTS: /srv/certs}}}`, nil},
	} {
		config, err := Parse([]byte("version: 1\nrepositories: {r: {url: r.git}}\nqueues: {q: {repository: r, steps: "+c.steps+"}}\n"), "c.yaml", Defaults{Workers: 1})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := config.Queues["q"].Steps.OpenCaches(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
