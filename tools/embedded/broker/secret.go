package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/kafka/credentials"
)

// User is the name with which clients give the secret, by SCRAM-SHA-256.
const User = "landfall"

// secretFile is in the data directory. Only its owner can read it.
const secretFile = "secret"

// makeSecret returns the secret of a data directory, and makes one if there is none, or one that others could read.
func makeSecret(dir string) (string, error) {
	path := filepath.Join(dir, secretFile)
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 {
		return ReadSecret(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("embedded broker: %w", err)
	}
	secret := rand.Text()
	return secret, writeWhole(path, secret+"\n")
}

// ReadSecret returns the secret that a file holds.
func ReadSecret(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("the embedded broker's secret: %w", err)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("the embedded broker's secret: %s is empty", file)
	}
	return secret, nil
}

// SecretOf returns the file with the secret that the brokers ask for: the one that the configuration names, or that of the
// embedded broker in its data directory if they are that one. It is empty for other brokers.
func SecretOf(c *configuration.Configuration, brokers []string) (file string) {
	if c.Broker.SecretFile != "" {
		return c.Broker.SecretFile
	}
	return SecretIn(filepath.Join(c.Data, "broker"), brokers)
}

// SecretIn returns the file with the secret of the broker in a directory if one of the addresses is its own, else nothing.
func SecretIn(dir string, brokers []string) (file string) {
	content, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return ""
	}
	own := strings.TrimSpace(string(content))
	if !slices.ContainsFunc(brokers, func(b string) bool { return sameAddress(b, own) }) {
		return ""
	}
	file = filepath.Join(dir, secretFile)
	if _, err := os.Lstat(file); err != nil {
		return "" // a broker of before there was a secret
	}
	return file
}

// sameAddress reports whether a client that connects to an address reaches a broker that listens at own.
func sameAddress(address, own string) bool {
	if address == own {
		return true
	}
	host, port, err := net.SplitHostPort(address)
	ownHost, ownPort, ownErr := net.SplitHostPort(own)
	return err == nil && ownErr == nil && port == ownPort && host == "localhost" && net.ParseIP(ownHost).IsLoopback()
}

// WithSecret returns the options of a client that gives the secret in a file, which is read for each connection. They are none
// without a file.
func WithSecret(file string) []kgo.Opt {
	if file == "" {
		return nil
	}
	return []kgo.Opt{kgo.SASL(scram.Sha256(func(context.Context) (scram.Auth, error) {
		secret, err := ReadSecret(file)
		return scram.Auth{User: User, Pass: secret}, err
	}))}
}

// Access returns the options of the clients of a service, for kafka.Options: those of the TLS and the account that the
// configuration names, else the secret as [SecretOf] has it at the moment of the call.
func Access(c *configuration.Configuration, brokers []string, service string) func() []kgo.Opt {
	return func() []kgo.Opt {
		if c.Broker.Secured() {
			return credentials.Options(c.Broker, service)
		}
		return WithSecret(SecretOf(c, brokers))
	}
}
