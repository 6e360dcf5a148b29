// Package certificate keeps the certificate of a server in step with its files.
package certificate

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// lookEvery is how often the files are looked at, at most.
const lookEvery = 10 * time.Second

// Certificate is a certificate and its key in two files in PEM. New connections get the pair that the files hold, so that it is
// renewed without a restart. While they hold no pair, the last one is served.
type Certificate struct {
	certificate, key string
	logger           *slog.Logger
	clock            func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	is     [2]mark
	looked time.Time
}

// mark tells one state of a file from another.
type mark struct {
	written time.Time
	size    int64
}

// Load reads the pair. The error names the file that is at fault.
func Load(certificate, key string, logger *slog.Logger) (*Certificate, error) {
	c := &Certificate{certificate: certificate, key: key, logger: logger, clock: time.Now}
	c.looked = c.clock()
	return c, c.load()
}

// Config serves the certificate to clients of TLS 1.2 and newer.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil }}
}

func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock(); now.Sub(c.looked) >= lookEvery {
		c.looked = now
		before := c.is
		if is, err := c.marks(); err == nil && is == before {
			return c.pair
		}
		if err := c.load(); err != nil {
			c.logger.Warn("the certificate cannot be read again; the last one is served", "error", err)
		} else {
			c.logger.Info("the certificate was read again", "until", c.pair.Leaf.NotAfter)
		}
	}
	return c.pair
}

func (c *Certificate) load() error {
	is, err := c.marks()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certificate, c.key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", c.certificate, c.key, err)
	}
	c.pair, c.is = &pair, is
	return nil
}

// marks is taken before the files are read, so that what is written meanwhile is read next time.
func (c *Certificate) marks() (is [2]mark, err error) {
	for i, name := range []string{c.certificate, c.key} {
		info, err := os.Stat(name)
		if err != nil {
			return is, err
		}
		is[i] = mark{info.ModTime(), info.Size()}
	}
	return is, nil
}
