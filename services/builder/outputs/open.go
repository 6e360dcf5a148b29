package outputs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"landfall.build/platform/configuration"
	"landfall.build/platform/secretplace"
)

const (
	// leastSeal bounds the key that seals what is kept in a remote, mostSecret that and what the remote asks for, in bytes.
	leastSeal  = 16
	mostSecret = 4 << 10
	// mostAuthorities bounds the file of certificates, in bytes.
	mostAuthorities = 4 << 20
)

// Open returns the remote of a configuration and the seal of what is kept there; nil if it has none. It does not ask the remote.
func Open(ctx context.Context, o configuration.SharedOutputs) (Remote, *Seal, error) {
	if o.URL == "" {
		return nil, nil, nil
	}
	key, err := readSecret(ctx, o.Seal)
	if err == nil && len(key) < leastSeal {
		err = fmt.Errorf("it has %d bytes, and %d are the least", len(key), leastSeal)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the key of builder.outputs.seal: %w", err)
	}
	remote, err := openRemote(ctx, o)
	if err != nil {
		return nil, nil, fmt.Errorf("builder.outputs: %w", err)
	}
	return remote, NewSeal(key), nil
}

func openRemote(ctx context.Context, o configuration.SharedOutputs) (Remote, error) {
	var password, token []byte
	var err error
	if o.User != "" {
		if password, err = readSecret(ctx, o.Password); err != nil {
			return nil, fmt.Errorf("the password: %w", err)
		}
	}
	if o.Token.Given() {
		if token, err = readSecret(ctx, o.Token); err != nil {
			return nil, fmt.Errorf("the token: %w", err)
		}
	}
	security, err := trusting(o.CA)
	if err != nil {
		return nil, fmt.Errorf("the certificates of authorities: %w", err)
	}
	switch o.Protocol() {
	case configuration.OutputsByHTTP:
		return NewHTTP(o.URL, o.User, string(password), security), nil
	case configuration.OutputsByGRPC:
		return NewGRPC(o.URL, authorization(o, password, token), security)
	case configuration.OutputsByS3:
		return NewS3(o.URL, o.S3, o.User, string(password), security)
	}
	return nil, errors.New("its url is of no store")
}

// readSecret returns a secret. A file of it may be read by its owner alone.
func readSecret(ctx context.Context, place configuration.SecretPlace) ([]byte, error) {
	if place.File != "" {
		info, err := os.Stat(place.File)
		if err != nil {
			return nil, err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("others can read %s: chmod 600 it, and have a new secret made if they may have", place.File)
		}
	}
	secret, err := secretplace.Read(ctx, place, mostSecret)
	return bytes.TrimSpace(secret), err
}

// trusting returns how connections are secured: with the authorities of a file, or those of the system if it is "".
func trusting(file string) (*tls.Config, error) {
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return security, nil
	}
	text, err := secretplace.Read(context.Background(), configuration.SecretPlace{File: file}, mostAuthorities)
	if err != nil {
		return nil, err
	}
	security.RootCAs = x509.NewCertPool()
	if !security.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return security, nil
}

// transport returns the transport of a store by HTTP.
func transport(security *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	t.MaxIdleConnsPerHost = mostAtOnce
	t.TLSClientConfig = security
	return t
}

// Try puts an entry with one file into a remote, and reads both. What it leaves there is the same each time.
func Try(ctx context.Context, remote Remote, seal *Seal) error {
	content := []byte("landfall doctor\n")
	d := digestOf(content)
	id := d.Hash
	if err := remote.PutFile(ctx, d, bytes.NewReader(content), true); err != nil {
		return fmt.Errorf("it does not take a file: %w", err)
	}
	if err := remote.PutEntry(ctx, id, seal.seal(id, content), []Digest{d}); err != nil {
		return fmt.Errorf("it does not take an entry: %w", err)
	}
	kept, err := remote.Entry(ctx, id)
	if err == nil {
		_, err = seal.open(id, kept)
	}
	if err != nil {
		return fmt.Errorf("it does not return the entry that it has taken: %w", err)
	}
	file, err := remote.File(ctx, d)
	if err == nil {
		_, err = readExactly(file, d)
		file.Close()
	}
	if err != nil {
		return fmt.Errorf("it does not return the file that it has taken: %w", err)
	}
	return nil
}
