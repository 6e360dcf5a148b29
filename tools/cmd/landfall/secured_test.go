package main

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/proto"

	"landfall.build/engine/prediction"
	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/kafka/credentials"
	"landfall.build/platform/journal/kafka/kafkatest"
	"landfall.build/platform/journal/rights"
	"landfall.build/tools/pipeline"
	"landfall.build/tools/trained/trainedtest"
)

// secured is a deployment on a Kafka with TLS, accounts and ACLs.
type secured struct {
	*deployment
	kafka   *kafkatest.Secured
	secrets string
}

// deploySecured starts every service under an account of its own.
func deploySecured(t *testing.T) *secured {
	t.Helper()
	s := prepareSecured(t)
	for _, name := range pipeline.Services() {
		s.start(name)
	}
	for _, name := range pipeline.Services() {
		s.awaitReady(name, true)
	}
	return s
}

// prepareSecured gives each account a password, and makes the ACLs by the command.
func prepareSecured(t *testing.T) *secured {
	t.Helper()
	s := &secured{kafka: kafkatest.NewSecured(t), secrets: t.TempDir()}
	for _, account := range rights.Accounts() {
		s.password(t, account, rand.Text())
	}
	if err := os.WriteFile(s.secret(rights.Admin), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.deployment = prepare(t, s.section("SCRAM-SHA-512", "user: \"landfall-{service}\"", filepath.Join(s.secrets, "{service}")))
	// The admin's account has another mechanism.
	admin := filepath.Join(s.dir, "admin.yaml")
	text, err := os.ReadFile(s.config())
	if err != nil {
		t.Fatal(err)
	}
	section := s.section("PLAIN", "user: landfall-admin", s.kafka.AdminPassword)
	if err := os.WriteFile(admin, []byte(strings.Replace(string(text), s.section("SCRAM-SHA-512", "user: \"landfall-{service}\"", filepath.Join(s.secrets, "{service}")), section, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := s.command("access", "kafka", "--apply", "--config", admin); code != 0 {
		t.Fatalf("the ACLs cannot be made: %s", out)
	}
	return s
}

func (s *secured) secret(account string) string { return filepath.Join(s.secrets, account) }

// password gives an account a password, on the cluster and then in its file.
func (s *secured) password(t *testing.T, account, password string) {
	t.Helper()
	s.kafka.SetPassword("landfall-"+account, password)
	if err := os.WriteFile(s.secret(account), []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// section returns the configuration of the log.
func (s *secured) section(mechanism, user, secret string) string {
	return fmt.Sprintf("broker: {brokers: [%q], partitions: 1, replication: 1, tls: {enabled: on, ca: %q}, sasl: {mechanism: %s, %s, secret: {file: %q}}}\n",
		s.kafka.Brokers[0], s.kafka.CA, mechanism, user, secret)
}

// TestEachServiceWorksUnderItsOwnAccount lands changes on a Kafka with TLS, accounts and ACLs; make kafka-secured-test has it on a real one.
func TestEachServiceWorksUnderItsOwnAccount(t *testing.T) {
	d := deploySecured(t)
	d.land("first")
	for _, args := range [][]string{
		{"log", "--topic", "decisions", "--config", d.config()},
		{"dead-letters", "--config", d.config()},
		{"replay", "--verify", "--config", d.config()},
		{"models", "--config", d.config()},
		{"webhooks", "list", "--config", d.config()},
	} {
		if out, code := d.command(args...); code != 0 {
			t.Errorf("%v: %d, %s", args, code, out)
		}
	}
	out, _ := d.command("doctor", "--config", d.config(), "--server", "http://"+d.gateway)
	for _, finding := range []string{"rights_missing", "rights_needless", "broker_unreachable", "topics_unfit", "check_failed"} {
		if strings.Contains(out, finding) {
			t.Errorf("doctor: %s", out)
		}
	}

	// Passwords are changed while the services run. Those that connect again need the new one, as do those that start.
	for _, account := range rights.Services() {
		d.password(t, account, rand.Text())
	}
	for _, name := range []string{events.ServiceSelector, events.ServiceLander} {
		d.kill(name)
		d.start(name)
		d.awaitReady(name, true)
	}
	d.land("second")

	// A wrong one is said, with whose it is and where it comes from.
	if err := os.WriteFile(d.secret(rights.Operator), []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out, code := d.command("log", "--config", d.config())
	if code == 0 || !strings.Contains(out, "the user landfall-operator (SCRAM-SHA-512, secret in "+d.secret(rights.Operator)) || time.Since(began) > 20*time.Second {
		t.Errorf("after %v: %s", time.Since(began), out)
	}
	t.Log(out)
	if os.Getenv(kafkatest.SecuredVariable) != "" && !strings.Contains(out, "it refuses the user landfall-operator") {
		t.Errorf("Kafka answers a wrong password, and the command does not say so: %s", out)
	}
	d.password(t, rights.Operator, rand.Text())

	// So is a right that is missing.
	var lacks *kadm.ACLBuilder
	for _, r := range rights.Of(rights.Operator) {
		if r.Name == events.TopicChanges {
			lacks = r.ACL("User:landfall-operator")
		}
	}
	if _, err := kadm.NewClient(d.kafka.AsAdmin()).DeleteACLs(t.Context(), lacks); err != nil {
		t.Fatal(err)
	}
	d.says([]string{"log", "--config", d.config()}, "the ACLs do not allow it to the user landfall-operator", "landfall access kafka --print")
	out, _ = d.command("doctor", "--config", d.config(), "--server", "http://"+d.gateway)
	if !strings.Contains(out, "rights_missing") && !strings.Contains(out, "the ACLs do not allow it") {
		t.Errorf("doctor does not find that a right is missing: %s", out)
	}
}

// TestEachCommandThatWritesTheLogMayWithItsAccount runs every command of the table that writes the log itself, on a Kafka with ACLs.
func TestEachCommandThatWritesTheLogMayWithItsAccount(t *testing.T) {
	d := prepareSecured(t)
	log, err := kafka.Open(t.Context(), kafka.Options{Brokers: d.kafka.Brokers, Log: slog.New(slog.DiscardHandler), Partitions: 1, Replication: 1,
		Client: func() []kgo.Opt { return d.kafka.As("landfall-" + rights.Up) }})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	put := func(topic, source, id string, term int64, m proto.Message) int64 {
		t.Helper()
		offsets, err := log.Append(t.Context(), topic, 0, events.Envelope{ID: id, Source: source, Queue: "shop", Time: time.Now(), Term: term, Message: m, JSON: topic == events.TopicOutcomes})
		if err != nil {
			t.Fatal(err)
		}
		return offsets[0]
	}
	request := put(events.TopicLandRequests, "client", "r", -1, &eventsv1.LandRequest{Queue: "shop", Change: "first", RequestId: "r", Entries: []*eventsv1.Entry{{Ref: "first"}}})
	put(events.TopicDeadLetters, events.ServiceGateway, "d", -1, &eventsv1.DeadLetter{Topic: events.TopicLandRequests, Offset: request, Service: events.ServiceGateway, Queue: "shop", Change: "first"})
	put(events.TopicOutcomes, events.ServiceOutcomes, "shop/1", -1, &eventsv1.ChangeOutcome{Queue: "shop", Subject: "first", State: "held", Sequence: 1})
	term := put(events.TopicDeliveries, events.ServiceWebhooks, "c", -1, &eventsv1.Claim{Service: events.ServiceWebhooks})
	put(events.TopicDeliveries, events.ServiceWebhooks, "f", term, &eventsv1.WebhookFollowed{Endpoint: "bot"})
	model, err := trainedtest.Model(1, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	put(events.TopicModels, events.ServiceTrainer, "m", -1, &eventsv1.ModelTrained{Model: model, Who: "trainer", StampUs: 1})

	config := []string{"--config", d.config()}
	wrote := map[string]int64{}
	for _, c := range []struct {
		command, topic string
		args           []string
	}{
		{"landfall dead-letters send", events.TopicLandRequests, []string{"land-requests/0/0"}},
		{"landfall webhooks send", events.TopicDeliveries, []string{"shop/1", "--endpoint", "bot"}},
		{"landfall models promote", events.TopicModels, []string{prediction.ShortVersion(model.Version)}},
		{"landfall models rollback", events.TopicModels, []string{"success"}},
		{"landfall token create", events.TopicAccess, []string{"bot", "--role", "viewer", "--queues", "shop", "--direct"}},
	} {
		before, err := log.End(t.Context(), c.topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		out, code := d.command(slices.Concat(strings.Fields(c.command)[1:], c.args, config)...)
		after, err := log.End(t.Context(), c.topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		if wrote[c.command] = after - before; code != 0 || after == before {
			t.Errorf("%s: exit code %d, %d records in %s: %s", c.command, code, after-before, c.topic, out)
		}
	}
	// These train models, which takes a ClickHouse.
	for command, account := range map[string]string{"landfall train queue": rights.Operator, "landfall trainer": events.ServiceTrainer} {
		for _, topic := range events.Topics() {
			if wrote[command] = 1; topic.Name == events.TopicModels && !rights.Writes(account, topic) {
				t.Errorf("%s writes %s, which the account %s may not", command, topic.Name, account)
			}
		}
	}
	for _, door := range access.Doors() {
		if _, tried := wrote[door.Name]; door.Kind == access.LogCommand && !tried {
			t.Errorf("nobody has tried %s", door.Name)
		}
	}
}

// reach returns why a broker does not let a client in.
func reach(t *testing.T, b configuration.Broker, brokers []string) error {
	err := kafka.Check(t.Context(), kafka.Options{
		Brokers: brokers, Log: slog.New(slog.DiscardHandler), Client: func() []kgo.Opt { return credentials.Options(b, rights.Operator) },
	})
	if errors.Is(err, kafka.ErrNoBroker) {
		return err
	}
	return nil
}

// TestOtherWaysInOnARealKafka has a certificate in the place of an account, and a token.
func TestOtherWaysInOnARealKafka(t *testing.T) {
	if os.Getenv(kafkatest.SecuredVariable) == "" {
		t.Skip("needs a real Kafka: make kafka-secured-test")
	}
	k := kafkatest.NewSecured(t)
	token := filepath.Join(t.TempDir(), "token")
	part := base64.RawURLEncoding.EncodeToString
	now := time.Now().Unix()
	unsigned := part([]byte(`{"alg":"none"}`)) + "." + part([]byte(fmt.Sprintf(`{"sub":"landfall-operator","iat":%d,"exp":%d}`, now-10, now+600))) + "."
	if err := os.WriteFile(token, []byte(unsigned), 0o600); err != nil {
		t.Fatal(err)
	}
	expired := token + "-expired"
	if err := os.WriteFile(expired, []byte(part([]byte(`{"alg":"none"}`))+"."+part([]byte(fmt.Sprintf(`{"sub":"landfall-operator","iat":%d,"exp":%d}`, now-1000, now-600)))+"."), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		brokers []string
		change  func(*configuration.Broker)
		want    string // of the error; empty: it is let in
	}{
		"PLAIN": {k.Brokers, func(b *configuration.Broker) {
			b.SASL = configuration.BrokerSASL{Mechanism: "PLAIN", User: k.Admin, Secret: configuration.SecretPlace{File: k.AdminPassword}}
		}, ""},
		"a certificate":  {k.Mutual, func(b *configuration.Broker) { b.TLS.Certificate, b.TLS.Key = k.ClientCertificate, k.ClientKey }, ""},
		"no certificate": {k.Mutual, func(b *configuration.Broker) {}, "asks for a certificate that it trusts"},
		"a token": {k.Brokers, func(b *configuration.Broker) {
			b.SASL = configuration.BrokerSASL{Mechanism: "OAUTHBEARER", Secret: configuration.SecretPlace{File: token}}
		}, ""},
		"an expired token": {k.Brokers, func(b *configuration.Broker) {
			b.SASL = configuration.BrokerSASL{Mechanism: "OAUTHBEARER", Secret: configuration.SecretPlace{File: expired}}
		}, "the account (OAUTHBEARER"},
		"no account":               {k.Brokers, func(b *configuration.Broker) {}, "for an account (broker.sasl)"},
		"no TLS":                   {k.Brokers, func(b *configuration.Broker) { b.TLS = configuration.BrokerTLS{Enabled: "off"} }, "broker.tls"},
		"the system's authorities": {k.Brokers, func(b *configuration.Broker) { b.TLS.CA = "" }, "signed by none of broker.tls.ca"},
	} {
		t.Run(name, func(t *testing.T) {
			b := configuration.New(configuration.Defaults{Workers: 1}).Broker
			b.TLS = configuration.BrokerTLS{Enabled: "on", CA: k.CA}
			c.change(&b)
			err := reach(t, b, c.brokers)
			t.Log(err)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
