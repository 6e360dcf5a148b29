package builder

import (
	"slices"
	"testing"

	"landfall.build/platform/configuration"
)

// TestNoStepSeesAFileWithASecretOfAService, wherever steps.read leads: those of other services of the machine neither.
func TestNoStepSeesAFileWithASecretOfAService(t *testing.T) {
	c, err := configuration.Parse([]byte(`version: 1
repositories: {shop: {url: /shop.git}}
queues:
  shop: {repository: shop, steps: {read: [/srv], secrets: {TOKEN: {file: /srv/token}}}}
broker:
  brokers: ["kafka:9092"]
  tls: {enabled: on, certificate: "/srv/{service}.pem", key: "/srv/{service}.key"}
hosts:
  servers: {forge: {kind: gitea, url: "https://git.example.com", token: {file: /srv/forge}, secret: {file: /srv/webhook}, queues: {shop: acme/shop}}}
`), "landfall.config.yaml", configuration.Defaults{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	hidden := (&session{Builder: New(Options{Configuration: c, Instance: "a"}), dir: "/data"}).hide()
	for _, path := range []string{"/data", "/srv/token", "/srv/forge", "/srv/webhook", "/srv/builder.key", "/srv/lander.key"} {
		if !slices.Contains(hidden, path) {
			t.Errorf("%s is not hidden: %q", path, hidden)
		}
	}
}
