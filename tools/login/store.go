// Package login signs a person in with a command: by a browser on the same machine (RFC 8252), or by a code for a browser elsewhere
// (RFC 8628). It keeps the tokens in a file of the user, and refreshes them.
package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"landfall.build/platform/configuration"
)

// maxFile bounds the file, maxGateways how many gateways it has tokens for.
const (
	maxFile     = 4 << 20
	maxGateways = 100
)

// Kept is what is kept of a person who has signed in at a gateway.
type Kept struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"client_id"`
	// Name is for people.
	Name         string    `json:"name"`
	IDToken      string    `json:"id_token"`
	RefreshToken string    `json:"refresh_token,omitempty"`
	Expires      time.Time `json:"expires"`
}

// Store is the file with the tokens, by gateway. Only its owner can read it.
type Store struct{ path string }

type content struct {
	Gateways map[string]Kept `json:"gateways"`
}

// Open returns the store in the user's configuration folder. It need not exist.
func Open() (*Store, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("find the folder for credentials: %w", err)
	}
	return &Store{filepath.Join(folder, "landfall", "credentials.json")}, nil
}

// Path returns where the file is.
func (s *Store) Path() string { return s.path }

// gatewayOf returns what a gateway is known by. Tokens go to it alone, and nobody reads them on the way.
func gatewayOf(server string) (string, error) {
	at, err := url.Parse(server)
	if err != nil || at.Host == "" {
		return "", fmt.Errorf("the server %q is not an address", server)
	}
	if at.Scheme != "https" && !configuration.IsLoopback(at.Host) {
		return "", fmt.Errorf("%s is reached over plain HTTP, where others read a token; use https", server)
	}
	return strings.ToLower(at.Scheme + "://" + at.Host), nil
}

func (s *Store) read() (content, error) {
	none := content{Gateways: map[string]Kept{}}
	file, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return none, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return none, fmt.Errorf("others can read %s: chmod 600 it, or sign out and in again", s.path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return none, err
	}
	var c content
	if err := json.Unmarshal(text, &c); err != nil {
		return none, fmt.Errorf("%s is not what landfall login writes: remove it, and sign in again", s.path)
	}
	if c.Gateways == nil {
		c.Gateways = none.Gateways
	}
	return c, nil
}

// change rewrites the file as f leaves its content. Others wait meanwhile, those who only read do not.
func (s *Store) change(f func(*content) error) error {
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	c, err := s.read()
	if err != nil {
		return err
	}
	if err := f(&c); err != nil {
		return err
	}
	if len(c.Gateways) > maxGateways {
		return fmt.Errorf("%s has tokens for %d gateways already; landfall logout --all removes them", s.path, maxGateways)
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	// os.CreateTemp makes files for their owner alone.
	fresh, err := os.CreateTemp(filepath.Dir(s.path), ".credentials-*")
	if err != nil {
		return err
	}
	defer os.Remove(fresh.Name())
	_, err = fresh.Write(append(text, '\n'))
	if err := errors.Join(err, fresh.Sync(), fresh.Close()); err != nil {
		return err
	}
	return os.Rename(fresh.Name(), s.path)
}

// put keeps the tokens for a gateway.
func (s *Store) put(gateway string, k Kept) error {
	return s.change(func(c *content) error { c.Gateways[gateway] = k; return nil })
}
