package outputs

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
)

// Seal authenticates entries of a remote, which may be written by others too: the steps of a change may reach it, and so may
// anybody else in its network. A nil Seal authenticates nothing.
type Seal struct{ key []byte }

// NewSeal returns the seal of those who have a key.
func NewSeal(key []byte) *Seal { return &Seal{key} }

func (s *Seal) sum(id string, content []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte("landfall outputs 1\n" + id + "\n"))
	mac.Write(content)
	return mac.Sum(nil)
}

// seal returns what a remote is given: the content behind its seal, which holds for this id alone.
func (s *Seal) seal(id string, content []byte) []byte {
	if s == nil {
		return content
	}
	return append(s.sum(id, content), content...)
}

// open returns the content that was sealed for an id.
func (s *Seal) open(id string, sealed []byte) ([]byte, error) {
	if s == nil {
		return sealed, nil
	}
	if len(sealed) < sha256.Size {
		return nil, errors.New("it is too short for a seal")
	}
	sum, content := sealed[:sha256.Size], sealed[sha256.Size:]
	if !hmac.Equal(sum, s.sum(id, content)) {
		return nil, errors.New("it was sealed for another target version, or with another key, or not at all")
	}
	return content, nil
}
