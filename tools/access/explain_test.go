package access_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
	"landfall.build/tools/access"
)

func TestTheRulesAreExplained(t *testing.T) {
	file := filepath.Join(t.TempDir(), "landfall.config.yaml")
	if err := os.WriteFile(file, []byte(`version: 1
repositories: {shop: {url: shop.git}}
queues: {shop: {repository: shop}}
access:
  mode: required
  issuers: {company: {url: "https://id.example.com", audiences: [landfall]}}
  rules:
  - {role: contributor, issuer: company, any: [{all: {groups: dev}}]}
  - {role: operator, queues: [shop], issuer: company, any: [{all: {groups: dev, oncall: true}}]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		c := access.Command(func(file string) (*configuration.Configuration, error) {
			return configuration.Load(file, configuration.Defaults{Workers: 1})
		})
		var out bytes.Buffer
		c.SetOut(&out)
		c.SetErr(&out)
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append([]string{"explain", "--config", file}, args...))
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("ada", "pause", "shop", "--claim", "groups=dev")
	if !errors.Is(err, access.NotAllowed{}) || !strings.Contains(out, "not allowed: ") || !strings.Contains(out, "+ access.rules[0] gives contributor") || !strings.Contains(out, "- access.rules[1] gives operator: oncall is not true") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("ada", "cancel", "shop", "--claim", "groups=all", "--claim", "groups=dev"); !errors.Is(err, access.NotAllowed{}) || !strings.Contains(out, "allowed for own changes, as contributor") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := run("ada", "pause", "shop", "--claim", "groups=dev", "--claim", "oncall=true"); err != nil || !strings.HasPrefix(out, "allowed, as operator\n") {
		t.Errorf("%v: %s", err, out)
	}
	for _, wrong := range [][]string{{"ada", "fly", "shop"}, {"ada", "pause", "shpo"}, {"ada", "pause", "shop", "--issuer", "other"}, {"ada", "pause", "shop", "--claim", "x"}} {
		if out, err := run(wrong...); err == nil || errors.Is(err, access.NotAllowed{}) {
			t.Errorf("%v: %s", wrong, out)
		}
	}
}
