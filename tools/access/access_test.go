package access_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"landfall.build/platform/configuration"
	"landfall.build/tools/access"
)

func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	c := access.Command(func(file string) (*configuration.Configuration, error) {
		return configuration.Load(file, configuration.Defaults{Workers: 1})
	})
	var out bytes.Buffer
	c.SetOut(&out)
	c.SetErr(&out)
	c.SetArgs(append([]string{"kafka"}, args...))
	err := c.ExecuteContext(t.Context())
	return out.String(), err
}

func TestTheACLsArePrinted(t *testing.T) {
	out, err := run(t, "--print", "--principal-prefix", "User:CN=ci-")
	want := "--allow-principal 'User:CN=ci-selector' --operation Read --operation Write --topic landfall.decisions\n"
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, no %q in:\n%s", err, want, out)
	}
	out, err = run(t, "--print", "--json")
	var got struct {
		ACLs []struct {
			Principal, Resource, Name, Pattern string
			Operations                         []string
		}
	}
	if err != nil || json.Unmarshal([]byte(out), &got) != nil || len(got.ACLs) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, a := range got.ACLs {
		if a.Principal == "User:landfall-profiler" && a.Resource == "group" && a.Pattern == "prefixed" && a.Name == "landfall.status.profiler." && a.Operations[0] == "Read" {
			return
		}
	}
	t.Errorf("the profiler has no group: %s", out)
}

func TestWhatIsNoPrincipalIsRefused(t *testing.T) {
	for _, prefix := range []string{"", "landfall-", "User:a b", "User:'; rm", "User:*"} {
		if out, err := run(t, "--print", "--principal-prefix", prefix); err == nil {
			t.Errorf("%q gives %s", prefix, out)
		}
	}
	if _, err := run(t); err == nil {
		t.Error("it does something without being told what")
	}
}

// TestTheACLsAreMade on a cluster, by the account of the configuration, and again.
func TestTheACLsAreMade(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.Superuser("SCRAM-SHA-512", "landfall-admin", "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "landfall.config.yaml"), filepath.Join(dir, "secret")
	config := fmt.Sprintf(`version: 1
repositories: {shop: {url: shop.git}}
queues: {shop: {repository: shop}}
broker: {brokers: [%q], sasl: {mechanism: SCRAM-SHA-512, user: "landfall-{service}", secret: {file: %q}}}
`, c.ListenAddrs()[0], secret)
	for name, text := range map[string]string{file: config, secret: "x\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if out, err := run(t, "--apply", "--config", file); err != nil || !strings.Contains(out, "ACLs of 18 accounts are there") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.SASL(scram.Auth{User: "landfall-admin", Pass: "x"}.AsSha512Mechanism()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	results, err := kadm.NewClient(client).DescribeACLs(t.Context(), kadm.NewACLs().Topics("landfall.decisions").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite).Allow().AllowHosts())
	if err != nil {
		t.Fatal(err)
	}
	var writers []string
	for _, r := range results {
		for _, d := range r.Described {
			writers = append(writers, d.Principal)
		}
	}
	if len(writers) != 2 || !strings.Contains(strings.Join(writers, " "), "User:landfall-selector") {
		t.Errorf("landfall.decisions is written by %v, want selector and up", writers)
	}
}
