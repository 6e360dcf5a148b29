package pipeline_test

import (
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/tools/pipeline"
)

// TestOnlyAGitLabHasAClientOfGitLab, which refuses addresses that others may take.
func TestOnlyAGitLabHasAClientOfGitLab(t *testing.T) {
	c := &configuration.Configuration{Queues: map[string]configuration.Queue{"main": {Branch: "main"}}}
	for kind, refused := range map[string]bool{configuration.HostGitea: false, configuration.HostGitLab: true} {
		h := configuration.Host{Kind: kind, URL: "http://[::1", Queues: map[string]string{"main": "acme/shop"}}
		if all, err := pipeline.Repositories(c, h); (err != nil) != refused || !refused && all["main"] == nil {
			t.Errorf("a host of kind %s has %v: %v", kind, all, err)
		}
	}
}
