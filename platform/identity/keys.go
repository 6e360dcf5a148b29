package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

const (
	maxKeys = 100
	// minRSA is the least length of an RSA key, in bytes.
	minRSA = 256
)

// algorithms are those of signatures that anybody can check and only the issuer can make: neither none nor one by a shared secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// algorithmNames are algorithms as go-oidc takes them.
func algorithmNames() []string {
	var names []string
	for _, a := range algorithms {
		names = append(names, string(a))
	}
	return names
}

// keySet is the public keys that an issuer signs tokens with.
type keySet []jose.JSONWebKey

// readKeys reads a JSON Web Key Set. Keys that are not for signatures, weak, or of a kind that is not known are left out.
func readKeys(r io.Reader) (keySet, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer))
	if err != nil {
		return nil, err
	}
	var given struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, errors.New("its keys are no JSON Web Key Set")
	}
	var set keySet
	for _, raw := range given.Keys[:min(len(given.Keys), maxKeys)] {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && key.Valid() && (key.Use == "" || key.Use == "sig") && strong(key.Key) {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
		return nil, errors.New("it has no key for signatures")
	}
	return set, nil
}

// strong reports whether a key is public, and not too short.
func strong(key any) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return key.Size() >= minRSA
	case *ecdsa.PublicKey, ed25519.PublicKey:
		return true
	}
	return false
}

// verify returns the payload of a token that one of the keys has signed.
func (s keySet) verify(token *jose.JSONWebSignature) ([]byte, bool) {
	header := token.Signatures[0].Header
	for _, key := range s {
		if header.KeyID != "" && key.KeyID != header.KeyID || key.Algorithm != "" && key.Algorithm != header.Algorithm {
			continue
		}
		if payload, err := token.Verify(key.Key); err == nil {
			return payload, true
		}
	}
	return nil, false
}

// signature is an oidc.KeySet for one token: the keys in memory, and if none of them has signed it those of the issuer.
type signature struct {
	keys *remote[keySet]
	// err is why it was not verified.
	err error
}

var _ oidc.KeySet = (*signature)(nil)

// VerifySignature implements oidc.KeySet.
func (s *signature) VerifySignature(ctx context.Context, text string) ([]byte, error) {
	token, err := jose.ParseSignedCompact(text, algorithms)
	if err != nil {
		s.err = fmt.Errorf("%w: it is no signed token", ErrRefused)
		return nil, s.err
	}
	known, _ := s.keys.known()
	if payload, ok := known.verify(token); ok {
		return payload, nil
	}
	fresh, err := s.keys.again(ctx)
	if err != nil {
		s.err = fmt.Errorf("the token's key is not known here, and %w", err)
		return nil, s.err
	}
	payload, ok := fresh.verify(token)
	if !ok {
		s.err = fmt.Errorf("%w: none of its issuer's keys has signed the token", ErrRefused)
		return nil, s.err
	}
	return payload, nil
}
