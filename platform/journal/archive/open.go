package archive

import (
	"context"
	"fmt"

	"landfall.build/platform/bucket"
	"landfall.build/platform/configuration"
	"landfall.build/platform/secretplace"
)

// Open returns the archive of a configuration, nil if it has none. It does not look there.
func Open(ctx context.Context, o configuration.Archive) (*Archive, error) {
	switch {
	case o.URL == "":
		return nil, nil
	case !o.IsBucket():
		return New(Folder(o.URL)), nil
	}
	var password []byte
	var err error
	if o.User != "" {
		if password, err = secretplace.ReadPrivate(ctx, o.Password); err != nil {
			return nil, fmt.Errorf("the password of broker.archive: %w", err)
		}
	}
	security, err := secretplace.Trusting(o.CA)
	if err != nil {
		return nil, fmt.Errorf("the certificates of authorities of broker.archive: %w", err)
	}
	b, err := bucket.Open(o.URL, o.S3, o.User, string(password), security)
	if err != nil {
		return nil, fmt.Errorf("broker.archive: %w", err)
	}
	return New(Bucket(b)), nil
}
