package configuration

import (
	"slices"
	"strings"
	"testing"
)

// TestNobodyAsksInAShadow at a host.
func TestNobodyAsksInAShadow(t *testing.T) {
	_, err := Parse([]byte("version: 1\nrepositories: {shop: {url: a}}\nqueues: {main: {repository: shop, shadow: on}}\nhosts: {servers: {forge: {url: 'https://x', token: {file: /x}, secret: {file: /x}, queues: {main: acme/shop}}}}\n"), "test.yaml", Defaults{Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "hosts.servers.forge.queues.main: is of a shadow") {
		t.Errorf("the error is %v", err)
	}
}

// TestAGitLabHasGroupsInGroupsAndChecks, which other hosts have not.
func TestAGitLabHasGroupsInGroupsAndChecks(t *testing.T) {
	c, err := Parse([]byte(smallest+"hosts: {servers: {forge: {kind: gitlab, checks: [test, 'e2e/*'], url: 'https://gitlab.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme/team/shop}}}}\n"), "test.yaml", Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if h := c.Hosts.Servers["forge"]; h.Kind != HostGitLab || h.Queues["main"] != "acme/team/shop" || !slices.Equal(h.Checks, []string{"test", "e2e/*"}) || h.Label != "landfall" {
		t.Errorf("it is %+v", h)
	}
}
