// Package credentials makes the options of Kafka clients that the configuration asks for: TLS, and the account by which brokers
// know the client. Files, variables and commands are read for each connection, so what they give can change while a service runs.
package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"landfall.build/platform/configuration"
	"landfall.build/platform/secretplace"
)

const (
	// dialTimeout bounds a connection with its TLS handshake.
	dialTimeout = 5 * time.Second
	// maxSecret is more than any password, token or credentials have.
	maxSecret = 64 << 10
)

// Options returns the options of a client of a service. They are none where the configuration asks for none.
func Options(b configuration.Broker, service string) []kgo.Opt {
	b = b.For(service)
	var options []kgo.Opt
	if b.TLS.Enabled == configuration.On {
		options = append(options, kgo.Dialer(dialer(b.TLS)))
	}
	if b.SASL.Used() {
		options = append(options, kgo.SASL(account{mechanism(b.SASL), describe(b.SASL)}))
	}
	return options
}

// account is a mechanism with words for who uses it.
type account struct {
	sasl.Mechanism
	who string
}

// String returns who logs in, and where the secret is.
func (a account) String() string { return a.who }

func describe(s configuration.BrokerSASL) string {
	who := "the account"
	if s.User != "" {
		who = "the user " + s.User
	}
	return fmt.Sprintf("%s (%s, secret %s)", who, s.Mechanism, whereOf(s.Secret))
}

// whereOf names a place without the arguments of a command.
func whereOf(p configuration.SecretPlace) string {
	switch {
	case p.File != "":
		return "in " + p.File
	case p.Environment != "":
		return "in the variable " + p.Environment
	case len(p.Command) > 0:
		return "by the command " + p.Command[0]
	}
	return "in the variables of AWS"
}

func mechanism(s configuration.BrokerSASL) sasl.Mechanism {
	read := func(ctx context.Context) (string, error) {
		value, err := secretplace.Read(ctx, s.Secret, maxSecret)
		secret := strings.TrimRight(string(value), "\r\n")
		if err == nil && secret == "" {
			err = errors.New("it is empty")
		}
		if err != nil {
			return "", fmt.Errorf("%w of %s: %w", ErrSecret, describe(s), err)
		}
		return secret, nil
	}
	withPassword := func(ctx context.Context) (scram.Auth, error) {
		password, err := read(ctx)
		return scram.Auth{User: s.User, Pass: password}, err
	}
	switch s.Mechanism {
	case configuration.SASLPlain:
		return plain.Plain(func(ctx context.Context) (plain.Auth, error) {
			password, err := read(ctx)
			return plain.Auth{User: s.User, Pass: password}, err
		})
	case configuration.SASLScram256:
		return scram.Sha256(withPassword)
	case configuration.SASLScram512:
		return scram.Sha512(withPassword)
	case configuration.SASLOAuth:
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := read(ctx)
			return oauth.Auth{Token: token}, err
		})
	case configuration.SASLAWS:
		return aws.ManagedStreamingIAM(func(ctx context.Context) (aws.Auth, error) { return awsCredentials(ctx, s, read) })
	}
	panic("credentials: no mechanism " + s.Mechanism) // the configuration was checked
}

// awsCredentials returns what a credential_process of AWS prints, or what the variables of AWS hold.
func awsCredentials(ctx context.Context, s configuration.BrokerSASL, read func(context.Context) (string, error)) (aws.Auth, error) {
	auth := aws.Auth{AccessKey: os.Getenv("AWS_ACCESS_KEY_ID"), SecretKey: os.Getenv("AWS_SECRET_ACCESS_KEY"), SessionToken: os.Getenv("AWS_SESSION_TOKEN")}
	if s.Secret.File != "" || s.Secret.Environment != "" || len(s.Secret.Command) > 0 {
		text, err := read(ctx)
		if err != nil {
			return aws.Auth{}, err
		}
		var printed struct{ AccessKeyId, SecretAccessKey, SessionToken string }
		if json.Unmarshal([]byte(text), &printed) != nil {
			// Not what it has: that may be the secret.
			return aws.Auth{}, fmt.Errorf("%w of %s: it is not the JSON that a credential_process of AWS prints", ErrSecret, describe(s))
		}
		auth = aws.Auth{AccessKey: printed.AccessKeyId, SecretKey: printed.SecretAccessKey, SessionToken: printed.SessionToken}
	}
	if auth.AccessKey == "" || auth.SecretKey == "" {
		return aws.Auth{}, fmt.Errorf("%w of %s: there is no access key, or no secret key", ErrSecret, describe(s))
	}
	return auth, nil
}

// ErrSecret is the error of a secret that cannot be read, ErrTLS that of a connection whose handshake fails.
var (
	ErrSecret = errors.New("no secret")
	ErrTLS    = errors.New("no TLS with the broker")
)

// dialer returns what connects to a broker by TLS.
func dialer(t configuration.BrokerTLS) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		c, err := clientConfig(t, address)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTLS, err)
		}
		raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(raw, c)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("%w %s: %s: %w", ErrTLS, address, adviceFor(err, t), err)
		}
		return conn, nil
	}
}

// clientConfig reads the files of the settings.
func clientConfig(t configuration.BrokerTLS, address string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if c.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		c.ServerName = host
	}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("broker.tls.ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("broker.tls.ca: %s has no certificate in PEM", t.CA)
		}
	}
	if t.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
		if err != nil {
			return nil, fmt.Errorf("broker.tls.certificate and key: %w", err)
		}
		c.Certificates = []tls.Certificate{certificate}
	}
	return c, nil
}

// adviceFor returns what a failed handshake means.
func adviceFor(err error, t configuration.BrokerTLS) string {
	signers := "the system's"
	if t.CA != "" {
		signers = t.CA
	}
	if _, is := errors.AsType[x509.UnknownAuthorityError](err); is {
		return "its certificate is signed by none of broker.tls.ca (" + signers + ")"
	}
	if invalid, is := errors.AsType[x509.CertificateInvalidError](err); is && invalid.Reason == x509.Expired {
		return "its certificate, or one that signed it, has expired or is not valid yet"
	}
	if _, is := errors.AsType[x509.HostnameError](err); is {
		return "its certificate is of another name: set broker.tls.server_name, or the address by that name"
	}
	if _, is := errors.AsType[tls.RecordHeaderError](err); is {
		return "it does not speak TLS there: set broker.tls.enabled: off, or the port of its TLS listener"
	}
	if errors.Is(err, io.EOF) {
		return "it closes the connection, as one that does not speak TLS there does: set broker.tls.enabled: off, or the port of its TLS listener"
	}
	return "the handshake fails"
}
