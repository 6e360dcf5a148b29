package configuration

import (
	"errors"
	"strings"
	"testing"
)

func TestEachServiceHasItsAccount(t *testing.T) {
	c := mustParse(t, smallest+`broker:
  tls: {enabled: on, certificate: "{service}.pem", key: "/k/{service}.key"}
  sasl: {mechanism: SCRAM-SHA-512, user: "landfall-{service}", secret: {command: [vault, "kafka/{service}"]}}
`)
	b := c.Broker.For("gateway")
	if b.TLS.Certificate != "gateway.pem" || b.TLS.Key != "/k/gateway.key" || b.SASL.User != "landfall-gateway" || b.SASL.Secret.Command[1] != "kafka/gateway" {
		t.Errorf("%+v", b)
	}
	if !c.Broker.PerService() || c.Broker.SASL.Secret.Command[1] != "kafka/{service}" {
		t.Errorf("%+v", c.Broker)
	}
	if mustParse(t, smallest).Broker.Secured() {
		t.Error("secured without settings")
	}
}

func TestSettingsOfBrokerAccessHaveToFit(t *testing.T) {
	for text, want := range map[string]string{
		`tls: {ca: a.pem}`:                                                  "as tls.enabled is off",
		`tls: {enabled: on, certificate: a.pem}`:                            "both or neither",
		`tls: {enabled: on, server_name: "a b"}`:                            "must be the name of a host",
		`sasl: {mechanism: PLAIN, user: a}`:                                 "says in 0 ways",
		`sasl: {mechanism: PLAIN, secret: {file: /x}}`:                      "is missing for PLAIN",
		`sasl: {user: a}`:                                                   "is not used by the mechanism none",
		`sasl: {secret: {file: /x}}`:                                        "sasl.mechanism is none",
		`sasl: {mechanism: OAUTHBEARER}`:                                    "says in 0 ways",
		`sasl: {mechanism: AWS_MSK_IAM, user: a}`:                           "is not used by the mechanism AWS_MSK_IAM",
		`sasl: {mechanism: plain}`:                                          "must be none, PLAIN",
		`{secret_file: x, tls: {enabled: on}}`:                              "is for an embedded broker",
		`sasl: {mechanism: PLAIN, user: "a-{Service}", secret: {file: /x}}`: "a brace that is not of {service}",
	} {
		body := text
		if !strings.HasPrefix(text, "{") {
			body = "{" + text + "}"
		}
		problems := problemsOf(t, smallest+"broker: "+body+"\n")
		if !strings.Contains(problems.Error(), want) {
			t.Errorf("%s: %v, want %q", text, problems, want)
		}
	}
}

// TestASecretInTheWrongPlaceIsNotRepeated: what is there may be the secret itself.
func TestASecretInTheWrongPlaceIsNotRepeated(t *testing.T) {
	for _, text := range []string{
		`sasl: {mechanism: PLAIN, user: a, secret: hunter2}`,
		`sasl: {mechanism: PLAIN, user: a, password: hunter2}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {file: hunter2}}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {environment: hunter2!}}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {environment: [hunter2]}}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {command: hunter2}}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {value: hunter2}}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {file: "hunter2\x01"}}`,
		`sasl: {mechanism: PLAIN, user: a, secret: {file: 4711}}`,
	} {
		_, err := Parse([]byte(smallest+"broker: {"+text+"}\n"), "f.yaml", fourCores)
		var problems Problems
		if !errors.As(err, &problems) {
			t.Fatalf("%s: %v", text, err)
		}
		if said := problems.Error(); strings.Contains(said, "hunter2") || strings.Contains(said, "4711") {
			t.Errorf("%s: %s", text, said)
		}
	}
}
