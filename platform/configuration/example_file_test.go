package configuration

import (
	"reflect"
	"testing"
)

func TestExampleHasEveryField(t *testing.T) {
	tree := exampleTree(t)
	for _, field := range exampleFields() {
		if _, has := lookup(tree, field.place); !has {
			t.Errorf("example.yaml has no %s", field.path())
		}
	}
}

// The example promises to show what is taken where a line is left out.
func TestExampleShowsTheDefaults(t *testing.T) {
	c, err := Load(examplePath, fourCores)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Queues["shop-main"]
	want := NewQueue("shop-main", Defaults{Workers: 8})
	want.Repository = "shop"
	want.Steps.Environment = got.Steps.Environment
	ccache := NewCache("ccache")
	ccache.Variable = "CCACHE_DIR"
	want.Steps.Secrets = got.Steps.Secrets
	want.Quotas = got.Quotas
	want.Steps.Caches = map[string]Cache{"ccache": ccache}
	want.Analysis.WholeRepositorySteps = got.Analysis.WholeRepositorySteps
	want.Flaky.Quarantine = []Quarantine{}
	want.Analysis.Adapters, want.Analysis.Inputs, want.Analysis.Hubs = []AdapterUse{}, []Input{}, []string{}
	want.Analysis.Uncovered.Ignore, want.Steps.Reports, want.Steps.RunsOn = []string{}, []string{}, []RunsOn{}
	want.Steps.Read, want.Steps.Write, want.Steps.NetworkDeny = []string{}, []string{}, []string{}
	bazel := &want.Analysis.Bazel
	bazel.StartupFlags, bazel.QueryFlags = []string{}, []string{}
	bazel.Build, bazel.Test = got.Analysis.Bazel.Build, got.Analysis.Bazel.Test
	if !reflect.DeepEqual(got, want) {
		t.Errorf("shop-main is\n%+v, the defaults are\n%+v", got, want)
	}
	fresh := New(fourCores)
	if c.Builder.Workers != fresh.Builder.Workers || c.Builder.Lease != fresh.Builder.Lease ||
		c.Broker.Partitions != fresh.Broker.Partitions || c.Broker.Replication != fresh.Broker.Replication ||
		c.Gateway.Listen != fresh.Gateway.Listen || len(c.Gateway.Hosts) > 0 || c.Repositories["shop"].Poll != NewRepository("").Poll {
		t.Errorf("the example has other values than the defaults: %+v", c)
	}
	if tools := c.Queues["tools"]; tools.Speculation.BypassThreshold != nil {
		t.Error("null for bypass_threshold did not turn bypassing off")
	}
}
