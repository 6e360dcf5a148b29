package identity

import (
	"crypto/sha256"
	"sync"
	"time"

	"landfall.build/engine/lru"
)

// maxCached bounds the tokens of an issuer that are remembered, in bytes.
const maxCached = 4 << 20

// cache remembers tokens that were verified, so that a signature is checked once for many requests. It holds no token, only its
// hash.
type cache struct {
	mu     sync.Mutex
	tokens *lru.Cache[[sha256.Size]byte, verified]
}

type verified struct {
	Identity
	// keys is the version of the keys that it was verified with.
	keys    uint64
	expires time.Time
}

func newCache() *cache { return &cache{tokens: lru.New[[sha256.Size]byte, verified](maxCached)} }

// get returns whom a token names that was verified with this version of the keys and has not expired.
func (c *cache) get(token string, keys uint64, now time.Time) (Identity, bool) {
	key := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	v, known := c.tokens.Get(key)
	if !known || v.keys != keys || now.After(v.expires) {
		return Identity{}, false
	}
	return v.Identity, true
}

func (c *cache) put(token string, keys uint64, identity Identity, expires time.Time) {
	key := sha256.Sum256([]byte(token))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.Put(key, verified{identity, keys, expires}, int64(len(token)))
}
