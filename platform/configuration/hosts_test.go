package configuration

import (
	"slices"
	"testing"
)

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
