package secretplace

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"landfall.build/platform/configuration"
)

const (
	// mostSecret bounds what a store asks for, and mostAuthorities a file of certificates, in bytes.
	mostSecret      = 4 << 10
	mostAuthorities = 4 << 20
)

// ReadPrivate returns a secret without the space around it. A file of it may be read by its owner alone.
func ReadPrivate(ctx context.Context, place configuration.SecretPlace) ([]byte, error) {
	if place.File != "" {
		info, err := os.Stat(place.File)
		if err != nil {
			return nil, err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return nil, fmt.Errorf("others can read %s: chmod 600 it, and have a new secret made if they may have", place.File)
		}
	}
	secret, err := Read(ctx, place, mostSecret)
	return bytes.TrimSpace(secret), err
}

// Trusting returns how connections to a store are secured: with the authorities of a file, or those of the system if it is "".
func Trusting(file string) (*tls.Config, error) {
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if file == "" {
		return security, nil
	}
	text, err := Read(context.Background(), configuration.SecretPlace{File: file}, mostAuthorities)
	if err != nil {
		return nil, err
	}
	security.RootCAs = x509.NewCertPool()
	if !security.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return security, nil
}
