package outputs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	remoteexecution "github.com/bazelbuild/remote-apis/build/bazel/remote/execution/v2"
	"google.golang.org/protobuf/proto"
)

// bazelCache is a Bazel remote cache as such are: it takes into cas only what has the digest of its name, into ac only results all of
// whose files it has, and asks for a password.
type bazelCache struct {
	mu    sync.Mutex
	kept  map[string][]byte
	puts  int
	fault int // the status of all answers, if it is set
}

func (b *bazelCache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	user, password, _ := r.BasicAuth()
	name := strings.TrimPrefix(r.URL.Path, "/landfall/")
	kept, there := b.kept[name]
	switch {
	case user != "ada" || password != "secret":
		w.WriteHeader(http.StatusUnauthorized)
	case b.fault != 0:
		w.WriteHeader(b.fault)
	case r.Method == http.MethodPut:
		if content, err := io.ReadAll(r.Body); err != nil || r.ContentLength < 0 || !b.put(name, content) {
			w.WriteHeader(http.StatusBadRequest)
		}
	case !there:
		w.WriteHeader(http.StatusNotFound)
	default:
		_, _ = w.Write(kept)
	}
}

// complete reports whether everything that a result names is kept.
func (b *bazelCache) complete(result *remoteexecution.ActionResult) bool {
	named := []*remoteexecution.Digest{result.StdoutDigest}
	for _, file := range result.OutputFiles {
		named = append(named, file.Digest)
	}
	for _, d := range named {
		if kept, there := b.kept["cas/"+d.GetHash()]; !there || int64(len(kept)) != d.GetSizeBytes() {
			return false
		}
	}
	return true
}

// put keeps what a Bazel cache would.
func (b *bazelCache) put(name string, content []byte) bool {
	kind, hash, _ := strings.Cut(name, "/")
	sum := sha256.Sum256(content)
	result := &remoteexecution.ActionResult{}
	if kind == "cas" && hash != hex.EncodeToString(sum[:]) || kind == "ac" && (proto.Unmarshal(content, result) != nil || !b.complete(result)) {
		return false
	}
	b.kept[name] = content
	b.puts++
	return true
}

func openCache(t *testing.T) (*bazelCache, *httptest.Server) {
	b := &bazelCache{kept: map[string][]byte{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return b, server
}

func TestABazelRemoteCacheIsSharedByMachines(t *testing.T) {
	cache, server := openCache(t)
	remote := func() Remote { return NewHTTP(server.URL+"/landfall/", "ada", "secret", nil) }
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "out/a"), strings.Repeat("one", 100_000))
	write(t, filepath.Join(from, "out/empty"), "")
	write(t, filepath.Join(from, "out/same"), strings.Repeat("one", 100_000))
	one := keeper(t, remote())
	if _, err := one.Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{}); err != nil {
		t.Fatal(err)
	}
	if cache.puts != 4 { // two files, the entry and the result
		t.Errorf("%d times something was put", cache.puts)
	}
	if _, err := one.Keep(t.Context(), key("b"), from, []string{"out"}, Bounds{}); err != nil || cache.puts > 6 {
		t.Errorf("files are put again: %d, %v", cache.puts, err)
	}
	other := keeper(t, remote())
	e, err := other.Find(t.Context(), key("a"), []string{"out"})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Folder.Lay(t.Context(), to, e); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(to, "out/a")); err != nil || len(content) != 300_000 {
		t.Errorf("%d bytes, %v", len(content), err)
	}
	if _, err := other.Find(t.Context(), key("c"), []string{"out"}); !errors.Is(err, ErrMissing) {
		t.Error(err)
	}
	if !other.awake(time.Now()) {
		t.Error("it is left alone because it lacks something")
	}
}

func TestARemoteCacheThatRefusesIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		password string
		status   int
	}{"a wrong password": {"guess", 0}, "a full one": {"secret", http.StatusInsufficientStorage}, "one that is overloaded": {"secret", http.StatusServiceUnavailable}} {
		cache, server := openCache(t)
		cache.fault = c.status
		k, from := keeper(t, NewHTTP(server.URL+"/landfall", "ada", c.password, nil)), t.TempDir()
		write(t, filepath.Join(from, "out"), "one")
		if _, err := k.Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if k.awake(time.Now()) {
			t.Errorf("%s: it is asked again at once", name)
		}
		if _, err := k.Find(t.Context(), key("a"), []string{"out"}); err != nil {
			t.Errorf("%s: the machine's own folder does not help: %v", name, err)
		}
	}
}

func TestWhatIsNoResultOfOursIsNotThere(t *testing.T) {
	cache, server := openCache(t)
	remote := NewHTTP(server.URL+"/landfall", "ada", "secret", nil)
	result := func(d Digest) []byte {
		content, err := proto.Marshal(actionResult(d, nil))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	for name, content := range map[string][]byte{
		"nothing": nil, "no message": []byte("<html>"), "another result": result(Digest{strings.Repeat("/", 64), 3}),
		"a result of what is gone": result(Digest{strings.Repeat("a", 64), 3}), "a huge one": result(Digest{strings.Repeat("a", 64), 1 << 60}),
	} {
		cache.kept["ac/"+key("a")] = content
		if _, err := remote.Entry(t.Context(), key("a")); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
