package credentials_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/certificate/certificatetest"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka"
	"landfall.build/platform/journal/kafka/credentials"
)

const password = "hunter2-hunter2"

// cluster returns a broker with one user, ada.
func cluster(t *testing.T, mechanism string, tlsConfig *tls.Config, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	opts = append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)
	if mechanism != "" {
		opts = append(opts, kfake.EnableSASL(), kfake.User(mechanism, "ada", password), kfake.Superuser("PLAIN", "root", "root"))
	}
	if tlsConfig != nil {
		opts = append(opts, kfake.TLS(tlsConfig))
	}
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// secret writes a secret into a file of a name that has the service's.
func secret(t *testing.T, value string) configuration.SecretPlace {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "gateway"), []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return configuration.SecretPlace{File: filepath.Join(dir, "{service}")}
}

func broker(t *testing.T, mechanism string, change func(*configuration.Broker)) configuration.Broker {
	t.Helper()
	b := configuration.New(configuration.Defaults{Workers: 1}).Broker
	b.SASL.Mechanism = mechanism
	if mechanism != configuration.SASLNone {
		b.SASL.User, b.SASL.Secret = "ada", secret(t, password)
	}
	if change != nil {
		change(&b)
	}
	return b
}

// open waits for a broker that takes the credentials; refused gives one that does not two seconds.
func open(t *testing.T, c *kfake.Cluster, b configuration.Broker) *kafka.Log {
	t.Helper()
	l, err := openWithin(t, time.Minute, c, b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func refused(t *testing.T, c *kfake.Cluster, b configuration.Broker) error {
	t.Helper()
	_, err := openWithin(t, 2*time.Second, c, b)
	return err
}

func openWithin(t *testing.T, wait time.Duration, c *kfake.Cluster, b configuration.Broker) (*kafka.Log, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait+time.Minute)
	defer cancel()
	l, err := kafka.Open(ctx, kafka.Options{
		Brokers: c.ListenAddrs(), Log: slog.New(slog.DiscardHandler), Partitions: 1, Replication: 1,
		Wait: wait, DeliveryTimeout: 2 * time.Second,
		Client: func() []kgo.Opt { return credentials.Options(b, "gateway") },
	})
	if ctx.Err() != nil {
		t.Errorf("it took a minute longer to say: %v", err)
	}
	if err == nil {
		t.Cleanup(l.Close)
	}
	return l, err
}

// works appends a record, and reads it.
func works(t *testing.T, l *kafka.Log) {
	t.Helper()
	if err := write(t, l); err != nil {
		t.Fatal(err)
	}
	c, err := l.Follow(t.Context(), events.TopicBuilds, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func write(t *testing.T, l *kafka.Log) error {
	_, err := l.Append(t.Context(), events.TopicBuilds, 0, events.Envelope{ID: "1", Source: events.ServiceBuilder, Queue: "q", Term: -1, Message: &eventsv1.StepFinished{}})
	return err
}

func TestAClientConnectsAsTheConfigurationSays(t *testing.T) {
	a := certificatetest.NewAuthority(t)
	mutual := a.Server("127.0.0.1", time.Hour)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool()
	a.Sign("gateway", time.Hour)
	withCA := func(b *configuration.Broker) { b.TLS.Enabled, b.TLS.CA = "on", a.File }
	for name, c := range map[string]struct {
		mechanism string
		server    *tls.Config
		change    func(*configuration.Broker)
	}{
		"plain text":        {configuration.SASLNone, nil, nil},
		"TLS":               {configuration.SASLNone, a.Server("127.0.0.1", time.Hour), withCA},
		"TLS, another name": {configuration.SASLNone, a.Server("kafka.example.com", time.Hour), func(b *configuration.Broker) { withCA(b); b.TLS.ServerName = "kafka.example.com" }},
		"mutual TLS": {configuration.SASLNone, mutual, func(b *configuration.Broker) {
			withCA(b)
			b.TLS.Certificate, b.TLS.Key = filepath.Join(a.Dir, "{service}.pem"), filepath.Join(a.Dir, "{service}.key")
		}},
		"PLAIN":              {configuration.SASLPlain, a.Server("127.0.0.1", time.Hour), withCA},
		"SCRAM-SHA-256":      {configuration.SASLScram256, nil, nil},
		"SCRAM-SHA-512, TLS": {configuration.SASLScram512, a.Server("127.0.0.1", time.Hour), withCA},
	} {
		t.Run(name, func(t *testing.T) {
			mechanism := c.mechanism
			if mechanism == configuration.SASLNone {
				mechanism = ""
			}
			works(t, open(t, cluster(t, mechanism, c.server), broker(t, c.mechanism, c.change)))
		})
	}
}

func TestWhoIsNotLetInReadsWhy(t *testing.T) {
	a, other := certificatetest.NewAuthority(t), certificatetest.NewAuthority(t)
	mutual := a.Server("127.0.0.1", time.Hour)
	mutual.ClientAuth, mutual.ClientCAs = tls.RequireAndVerifyClientCert, a.Pool()
	good := a.Server("127.0.0.1", time.Hour)
	withCA := func(b *configuration.Broker) { b.TLS.Enabled, b.TLS.CA = "on", a.File }
	for name, c := range map[string]struct {
		mechanism string
		server    *tls.Config
		ours      string
		change    func(*configuration.Broker)
		want      string
	}{
		"no TLS":             {"", good, configuration.SASLNone, nil, "broker.tls"},
		"another CA":         {"", good, configuration.SASLNone, func(b *configuration.Broker) { withCA(b); b.TLS.CA = other.File }, "signed by none of broker.tls.ca (" + other.File},
		"no CA file":         {"", good, configuration.SASLNone, func(b *configuration.Broker) { withCA(b); b.TLS.CA = "/nowhere/ca.pem" }, "broker.tls.ca: open /nowhere/ca.pem"},
		"expired":            {"", a.Server("127.0.0.1", -time.Minute), configuration.SASLNone, withCA, "has expired"},
		"another name":       {"", a.Server("kafka.example.com", time.Hour), configuration.SASLNone, withCA, "set broker.tls.server_name"},
		"no certificate":     {"", mutual, configuration.SASLNone, withCA, "asks for a certificate that it trusts: set broker.tls.certificate"},
		"no account":         {configuration.SASLPlain, nil, configuration.SASLNone, nil, "for an account (broker.sasl)"},
		"wrong password":     {configuration.SASLScram512, nil, configuration.SASLScram512, func(b *configuration.Broker) { b.SASL.Secret = secret(t, "wrong") }, "while the user ada (SCRAM-SHA-512, secret in /"},
		"wrong PLAIN":        {configuration.SASLPlain, nil, configuration.SASLPlain, func(b *configuration.Broker) { b.SASL.Secret = secret(t, "wrong") }, "while the user ada (PLAIN, secret in /"},
		"no such user":       {configuration.SASLScram256, nil, configuration.SASLScram256, func(b *configuration.Broker) { b.SASL.User = "eve" }, "while the user eve (SCRAM-SHA-256"},
		"another mechanism":  {configuration.SASLScram256, nil, configuration.SASLOAuth, nil, "does not take the mechanism of "},
		"no password":        {configuration.SASLPlain, nil, configuration.SASLPlain, func(b *configuration.Broker) { b.SASL.Secret = configuration.SecretPlace{File: "/nowhere/x"} }, "no secret of the user ada (PLAIN, secret in /nowhere/x): open /nowhere/x: no such file"},
		"no variable":        {configuration.SASLPlain, nil, configuration.SASLPlain, func(b *configuration.Broker) { b.SASL.Secret = configuration.SecretPlace{Environment: "NOT_SET"} }, "no variable NOT_SET"},
		"credentials of AWS": {configuration.SASLPlain, nil, configuration.SASLAWS, nil, "does not take the mechanism of "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refused(t, cluster(t, c.mechanism, c.server), broker(t, c.ours, c.change))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			t.Log(err)
		})
	}
}

// TestABrokerWithoutTLSIsNamed: one that takes the beginning of a handshake for the length of a request closes the connection.
func TestABrokerWithoutTLSIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 4))
			_ = conn.(*net.TCPConn).CloseWrite()
		}
	}()
	b := broker(t, configuration.SASLNone, func(b *configuration.Broker) { b.TLS.Enabled = "on" })
	_, err = kafka.Open(t.Context(), kafka.Options{Brokers: []string{l.Addr().String()}, Wait: 2 * time.Second, Log: slog.New(slog.DiscardHandler), Client: func() []kgo.Opt { return credentials.Options(b, "gateway") }})
	if err == nil || !strings.Contains(err.Error(), "does not speak TLS there does: set broker.tls.enabled: off") {
		t.Error(err)
	}
}

// TestAPasswordIsRotatedWhileAServiceRuns: the broker has the new one, then the file, and connections are made again.
func TestAPasswordIsRotatedWhileAServiceRuns(t *testing.T) {
	c := cluster(t, configuration.SASLScram512, nil)
	b := broker(t, configuration.SASLScram512, nil)
	l := open(t, c, b)
	works(t, l)
	root, err := kgo.NewClient(append(credentials.Options(broker(t, configuration.SASLPlain, func(b *configuration.Broker) {
		b.SASL.User, b.SASL.Secret = "root", secret(t, "root")
	}), "gateway"), kgo.SeedBrokers(c.ListenAddrs()...))...)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	rotate := func(to string) {
		r, err := kadm.NewClient(root).AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: "ada", Mechanism: kadm.ScramSha512, Iterations: 4096, Password: to}})
		if err == nil {
			err = r.Error()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	rotate("another")
	// The broker ends the connection.
	c.ControlKey(kmsg.Produce.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) { return nil, kerr.UnknownServerError, true })
	if err := write(t, l); err == nil {
		t.Fatal("it writes with the old password")
	} else {
		t.Log(err)
		if !strings.Contains(err.Error(), "while the user ada (SCRAM-SHA-512") {
			t.Errorf("it does not say why: %v", err)
		}
	}
	if err := os.WriteFile(b.For("gateway").SASL.Secret.File, []byte("another"), 0o600); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(30 * time.Second)
	for err = write(t, l); err != nil; err = write(t, l) {
		if time.Now().After(until) {
			t.Fatalf("it does not take the new password: %v", err)
		}
	}
}

// TestTokensAndCredentialsOfAWSAreSent: kfake has neither mechanism, so only what the client sends is looked at.
func TestTokensAndCredentialsOfAWSAreSent(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "of the environment")
	for name, c := range map[string]struct {
		mechanism string
		place     configuration.SecretPlace
		want      string
	}{
		"a token":                {configuration.SASLOAuth, secret(t, "a.b.c"), "n,,\x01auth=Bearer a.b.c\x01\x01"},
		"credentials of AWS":     {configuration.SASLAWS, secret(t, `{"Version": 1, "AccessKeyId": "AKID", "SecretAccessKey": "x", "SessionToken": "session"}`), `"x-amz-credential":"AKID/`},
		"the environment of AWS": {configuration.SASLAWS, configuration.SecretPlace{}, `"x-amz-credential":"AKIDENV/`},
		"a token printed":        {configuration.SASLOAuth, configuration.SecretPlace{Command: []string{"printf", "t-{service}"}}, "auth=Bearer t-gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			c0 := cluster(t, configuration.SASLPlain, nil)
			sent := make(chan string, 100)
			c0.ControlKey(kmsg.SASLHandshake.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
				c0.KeepControl()
				return r.ResponseKind(), nil, r.(*kmsg.SASLHandshakeRequest).Mechanism == c.mechanism
			})
			c0.ControlKey(kmsg.SASLAuthenticate.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
				c0.KeepControl()
				sent <- string(r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes)
				response := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
				response.ErrorCode = kerr.SaslAuthenticationFailed.Code
				return response, nil, true
			})
			err := refused(t, c0, broker(t, c.mechanism, func(b *configuration.Broker) { b.SASL.User, b.SASL.Secret = "", c.place }))
			if err == nil || !strings.Contains(err.Error(), "refuses the account ("+c.mechanism) {
				t.Error(err)
			}
			select {
			case got := <-sent:
				if !strings.Contains(got, c.want) {
					t.Errorf("it sends %q, want %q", got, c.want)
				}
			default:
				t.Error("it sends nothing")
			}
		})
	}
}
