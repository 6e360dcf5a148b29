package outputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"landfall.build/platform/configuration"
	"landfall.build/platform/secretplace"
)

// leastSeal bounds the key that seals what is kept in a remote, in bytes.
const leastSeal = 16

// Open returns the remote of a configuration and the seal of what is kept there; nil if it has none. It does not ask the remote.
func Open(ctx context.Context, o configuration.SharedOutputs) (Remote, *Seal, error) {
	if o.URL == "" {
		return nil, nil, nil
	}
	key, err := secretplace.ReadPrivate(ctx, o.Seal)
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
		if password, err = secretplace.ReadPrivate(ctx, o.Password); err != nil {
			return nil, fmt.Errorf("the password: %w", err)
		}
	}
	if o.Token.Given() {
		if token, err = secretplace.ReadPrivate(ctx, o.Token); err != nil {
			return nil, fmt.Errorf("the token: %w", err)
		}
	}
	security, err := secretplace.Trusting(o.CA)
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
