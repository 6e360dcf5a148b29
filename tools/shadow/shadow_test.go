package shadow

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

// configured is of two queues, of which one is a shadow, with a code host and webhooks of both.
func configured(t *testing.T, more string) *configuration.Configuration {
	t.Helper()
	c, err := configuration.Parse([]byte("version: 1\nrepositories: {shop: {url: /nowhere}, tools: {url: /nowhere2}}\nqueues: {shop: {repository: shop, shadow: on}, tools: {repository: tools}}\n"+more), "test.yaml", configuration.Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.Data = t.TempDir()
	return c
}

// TestAShadowHasALogOfItsOwn: in no data folder of a queue that lands, and not on a cluster.
func TestAShadowHasALogOfItsOwn(t *testing.T) {
	c := configured(t, "")
	at := func(parts ...string) string { return filepath.Join(append([]string{c.Data}, parts...)...) }
	check := func(want string) {
		t.Helper()
		if err := Check(c); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	check("")
	if err := os.MkdirAll(at("broker"), 0o755); err != nil {
		t.Fatal(err)
	}
	check("has a log in which queue shop is no shadow")
	if err := os.MkdirAll(at("shadows", "shop.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	check("")
	if err := os.MkdirAll(at("shadows", "tools.git"), 0o755); err != nil {
		t.Fatal(err)
	}
	check("has the log of a shadow of queue tools")
	c = configured(t, "broker: {brokers: ['127.0.0.1:9092']}\n")
	check("without broker.brokers")
}

func TestNobodyIsToldOfAShadow(t *testing.T) {
	c := configured(t, "webhooks: {all: {url: 'https://x.example.com', secret: {file: /x}}, shop: {url: 'https://x.example.com', secret: {file: /x}, queues: [shop]}}\n")
	// A queue becomes a shadow by a flag too, which comes after the configuration was checked.
	c.Hosts.Servers = map[string]configuration.Host{
		"both": {Queues: map[string]string{"shop": "acme/shop", "tools": "acme/tools"}}, "one": {Queues: map[string]string{"shop": "acme/other"}},
	}
	tellNobody(c, "shop")
	if !slices.Equal(slices.Sorted(maps.Keys(c.Hosts.Servers)), []string{"both"}) || !maps.Equal(c.Hosts.Servers["both"].Queues, map[string]string{"tools": "acme/tools"}) {
		t.Errorf("the code hosts are %+v", c.Hosts.Servers)
	}
	if len(c.Webhooks) != 1 || !slices.Equal(c.Webhooks["all"].Queues, []string{"tools"}) {
		t.Errorf("the webhooks are %+v", c.Webhooks)
	}
}

func TestAShadowBeginsWithABoundedNumberOfCommits(t *testing.T) {
	for _, last := range []int{-1, maxCommits + 1} {
		if _, err := Prepare(t.Context(), Options{Configuration: configured(t, ""), Logger: slog.New(slog.DiscardHandler), Last: last}); err == nil || !strings.Contains(err.Error(), "0 to 5000 commits") {
			t.Errorf("%d: %v", last, err)
		}
	}
}

func TestARepositoryThatCannotBeReadIsSaidAtTheStart(t *testing.T) {
	c := configured(t, "")
	repository := c.Repositories["shop"]
	repository.URL = filepath.Join(t.TempDir(), "nothing.git")
	c.Repositories["shop"] = repository
	if _, err := Prepare(t.Context(), Options{Configuration: c, Logger: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "queue shop cannot follow its repository") {
		t.Errorf("the error is %v", err)
	}
}
