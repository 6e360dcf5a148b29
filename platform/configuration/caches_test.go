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
