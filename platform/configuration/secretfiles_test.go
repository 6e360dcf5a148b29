package configuration

import (
	"slices"
	"testing"
)

// TestAllFilesWithSecretsAreNamed: those of the example, which has every setting.
func TestAllFilesWithSecretsAreNamed(t *testing.T) {
	c, err := Load(examplePath, fourCores)
	if err != nil {
		t.Fatal(err)
	}
	c.Broker.TLS.Key, c.Gateway.TLS.Key, c.Broker.SecretFile = "/keys/{service}.key", "/keys/gateway.key", "/keys/broker"
	files := c.SecretFiles()
	for _, want := range []string{"/keys/{service}.key", "/keys/gateway.key", "/keys/broker", c.Access.Issuers["company"].ClientSecret.File, c.Queues["shop-main"].Steps.Secrets["REGISTRY_TOKEN"].File, c.Broker.SASL.Secret.File} {
		if !slices.Contains(files, want) {
			t.Errorf("%s is not among %v", want, files)
		}
	}
	if len(files) < 5 || slices.Contains(files, "") || !slices.IsSorted(files) {
		t.Errorf("the files are %v", files)
	}
}
