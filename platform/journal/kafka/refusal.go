package kafka

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"landfall.build/platform/journal/kafka/credentials"
)

// ErrRefused is returned by Open if a broker does not let the client in, and waiting does not help.
var ErrRefused = errors.New("the broker does not let this client in")

// lastConnection holds the error of a client's last attempt to connect, nil if it succeeded. The client tries again by itself, and
// its own error may be only that there was no time left.
type lastConnection struct {
	mu  sync.Mutex
	err error
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (c *lastConnection) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

// refusal returns why the client is not let in, if that is the reason of an error of it or of its last connection; else nil.
func (o Options) refusal(client *kgo.Client, err error) error {
	o.last.mu.Lock()
	defer o.last.mu.Unlock()
	if refused := refusalOf(client, err); refused != nil || o.last.err == nil {
		return refused
	}
	return refusalOf(client, o.last.err)
}

// accountOf names the account of a client, for messages.
func accountOf(client *kgo.Client) string {
	mechanisms := mechanismsOf(client)
	if len(mechanisms) == 0 {
		return "a client without an account"
	}
	if named, is := mechanisms[0].(fmt.Stringer); is {
		return named.String()
	}
	return "the account (" + mechanisms[0].Name() + ")"
}

func mechanismsOf(client *kgo.Client) []sasl.Mechanism {
	mechanisms, _ := client.OptValue(kgo.SASL).([]sasl.Mechanism)
	return mechanisms
}

// refusalOf returns why a broker does not let a client in, in words; nil if the error says nothing of the kind.
func refusalOf(client *kgo.Client, err error) error {
	advice := ""
	var early *kgo.ErrFirstReadEOF
	switch text := err.Error(); {
	// Of OAUTHBEARER a broker's first answer has the reason, and the client takes any answer for an error of these words.
	case errors.Is(err, kerr.SaslAuthenticationFailed), strings.Contains(text, "unexpected data in oauth response"):
		advice = "it refuses " + accountOf(client) + ": there is no such account, or the secret is wrong or has expired"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		advice = "it does not take the mechanism of " + accountOf(client) + ": set another broker.sasl.mechanism"
	case errors.Is(err, kerr.IllegalSaslState):
		advice = "it asks for no account on this port: set broker.sasl.mechanism: none, or the port of its SASL listener"
	case errors.Is(err, credentials.ErrTLS), errors.Is(err, credentials.ErrSecret):
		if errors.As(err, &early) {
			err = early.Unwrap() // its own text hides that one
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case strings.Contains(text, "remote error: tls: "):
		advice = "it asks for a certificate that it trusts: set broker.tls.certificate and key, or renew them"
	case strings.Contains(text, "appear to be a tls alert record"):
		advice = "it asks for TLS: set broker.tls.enabled: on"
	case errors.As(err, &early):
		advice = "it closes the connection, so it asks for TLS (broker.tls) or for an account (broker.sasl); the secret of an embedded broker is in " +
			"the file broker/secret of its data directory (name that with --data, or the file with broker.secret_file)"
	case errors.Is(err, io.EOF) && len(mechanismsOf(client)) > 0:
		// The embedded broker gives no other answer to a wrong secret.
		advice = "it closes the connection while " + accountOf(client) + " logs in: there may be no such account, or the secret is wrong"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s: %w", ErrRefused, advice, err)
}

// ErrRights is the error of a request that the ACLs do not allow.
var ErrRights = errors.New("the ACLs do not allow it")

// withRights adds to an error of missing rights whose they are and what to do.
func withRights(client *kgo.Client, err error) error {
	if errors.Is(err, ErrRights) {
		return err
	}
	for _, missing := range []error{kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed} {
		if errors.Is(err, missing) {
			return fmt.Errorf("%w to %s; `landfall access kafka --print` lists what each service needs: %w", ErrRights, accountOf(client), err)
		}
	}
	return err
}
