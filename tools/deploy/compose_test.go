package deploy

import (
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"

	"landfall.build/platform/configuration"
)

// TestTheComposeFilesAreValid: by the code that docker compose reads them with.
func TestTheComposeFilesAreValid(t *testing.T) {
	for file, want := range map[string][]string{
		"compose.yaml": {"landfall"},
		"compose.cluster.yaml": {"analyzer", "builder", "clickhouse", "enumerator", "gateway", "historian", "kafka-1", "kafka-2", "kafka-3",
			"lander", "outcomes", "prioritizer", "profiler", "selector", "trainer"},
	} {
		options, err := cli.NewProjectOptions([]string{folder + "/compose/" + file}, cli.WithEnv([]string{"CLICKHOUSE_PASSWORD=secret"}))
		if err != nil {
			t.Fatal(err)
		}
		project, err := options.LoadProject(t.Context())
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		names := project.ServiceNames()
		slices.Sort(names)
		if !slices.Equal(names, want) {
			t.Errorf("%s has %q", file, names)
		}
		nodes := map[string]bool{}
		for name, s := range project.Services {
			if node := s.Environment["KAFKA_NODE_ID"]; node != nil {
				nodes[*node] = true
			}
			if !strings.HasPrefix(s.Image, "landfall:") {
				continue
			}
			if len(s.Command) == 0 || name != "landfall" && s.Command[0] != name || !s.ReadOnly {
				t.Errorf("%s: %s runs %q, with a root that it can write: %v", file, name, s.Command, !s.ReadOnly)
			}
			if !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged || s.User != "" && s.User != "10001:10001" {
				t.Errorf("%s: %s has rights: %v, %v, user %q", file, name, s.CapDrop, s.CapAdd, s.User)
			}
			for _, p := range s.Ports {
				if p.HostIP != "127.0.0.1" {
					t.Errorf("%s: %s is published to others without TLS", file, name)
				}
			}
		}
		if len(want) > 1 && len(nodes) != 3 {
			t.Errorf("%s: the brokers are %v", file, nodes)
		}
	}
}

// TestStepsDoNotReachTheBrokersOfTheComposeFile: these ask nobody who it is.
func TestStepsDoNotReachTheBrokersOfTheComposeFile(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{folder + "/compose/compose.cluster.yaml"}, cli.WithEnv([]string{"CLICKHOUSE_PASSWORD=secret"}))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := configuration.Load(folder+"/compose/landfall.cluster.yaml", configuration.Defaults{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	ipam := project.Networks["default"].Ipam.Config
	for name, queue := range c.Queues {
		if len(ipam) != 1 || len(project.Networks) != 1 || !slices.Contains(queue.Steps.NetworkDeny, ipam[0].Subnet) {
			t.Errorf("steps of %s reach the network of the brokers, %v", name, project.Networks)
		}
	}
}
