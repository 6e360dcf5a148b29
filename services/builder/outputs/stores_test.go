package outputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"

	"landfall.build/platform/configuration"
)

// store is what machines share, in one of the ways in which they can.
type store struct {
	// address is where its server listens, and open connects to it, there or through a proxy; nil for a folder that they share.
	address string
	open    func(t *testing.T, address string) Remote
	folder  *Folder
	// change gives each file or entry that is kept other content, past the checks of the server; nil deletes it. It is nil where a server
	// cannot be gone past.
	change func(t *testing.T, part string, how func([]byte) []byte)
}

// machine returns the keeper of another machine.
func (s *store) machine(t *testing.T, address string) *Keeper {
	t.Helper()
	if s.open == nil {
		k := keeper(t, nil)
		k.Folder = s.folder
		return k
	}
	k := keeper(t, s.open(t, address))
	k.Patience = time.Minute
	return k
}

func sharedFolder(t *testing.T) *store {
	f := open(t)
	return &store{folder: f, change: func(t *testing.T, part string, how func([]byte) []byte) {
		changeFiles(t, filepath.Join(f.dir, part), how)
	}}
}

// changeFiles changes all files below a folder.
func changeFiles(t *testing.T, dir string, how func([]byte) []byte) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		n++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if content = how(content); content == nil {
			return os.Remove(path)
		}
		return os.WriteFile(path, content, 0o600)
	})
	if err != nil || n == 0 {
		t.Fatalf("%d files of %s were changed: %v", n, dir, err)
	}
}

func (b *bazelCache) change(t *testing.T, part string, how func([]byte) []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for name, content := range b.kept {
		if strings.HasPrefix(name, map[string]string{filesPart: "cas/", entriesPart: "ac/"}[part]) {
			n++
			if b.kept[name] = how(bytes.Clone(content)); b.kept[name] == nil {
				delete(b.kept, name)
			}
		}
	}
	if n == 0 {
		t.Fatal("nothing is kept")
	}
}

func byHTTP(t *testing.T) *store {
	cache, server := openCache(t)
	return &store{address: server.Listener.Addr().String(), change: cache.change, open: func(_ *testing.T, address string) Remote {
		return NewHTTP("http://"+address+"/landfall", "ada", "secret", nil)
	}}
}

func bazelByGRPC(t *testing.T) *store {
	cache := &bazelCache{kept: map[string][]byte{}}
	return &store{address: serveGRPC(t, cache, nil), change: cache.change, open: func(t *testing.T, address string) Remote {
		return grpcAt(t, "grpc://"+address+"/landfall", []string{"authorization", "Bearer secret"})
	}}
}

func grpcAt(t *testing.T, url string, header []string) Remote {
	remote, err := NewGRPC(url, header, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remote.connection.Close() })
	return remote
}

func fakeS3(t *testing.T) *store {
	backend := s3mem.New()
	if err := backend.CreateBucket("shop"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return bucketAt(t, server.Listener.Addr().String(), "ada", "secret")
}

// bucketAt is the bucket shop of a service.
func bucketAt(t *testing.T, address, user, password string) *store {
	s := &store{address: address, open: func(t *testing.T, address string) Remote { return s3At(t, address, user, password) }}
	s.change = func(t *testing.T, part string, how func([]byte) []byte) {
		t.Helper()
		direct, n := s3At(t, address, user, password), 0
		for object := range direct.client.Client.ListObjects(t.Context(), direct.bucket, minio.ListObjectsOptions{Prefix: direct.prefix + part + "/", Recursive: true}) {
			content, _, err := direct.get(t.Context(), object.Key)
			if err != nil {
				t.Fatal(object.Key, err)
			}
			read, err := io.ReadAll(content)
			content.Close()
			if n++; err != nil {
				t.Fatal(err)
			}
			if read = how(read); read == nil {
				err = direct.client.RemoveObject(t.Context(), direct.bucket, object.Key, minio.RemoveObjectOptions{})
			} else {
				_, err = direct.client.Client.PutObject(t.Context(), direct.bucket, object.Key, bytes.NewReader(read), int64(len(read)), minio.PutObjectOptions{DisableContentSha256: true})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n == 0 {
			t.Fatal("nothing is kept")
		}
	}
	return s
}

func s3At(t *testing.T, address, user, password string) *S3 {
	s, err := NewS3("s3://shop/land/fall", configuration.SharedBucket{Endpoint: "http://" + address, Region: "us-east-1", Addressing: configuration.AddressingAuto}, user, password, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// leave writes what a step leaves: small files, an empty one, one that is executable, a link, and one that is larger than a message.
func leave(t *testing.T, small int, large int) (workspace string) {
	t.Helper()
	workspace = t.TempDir()
	for i := range small {
		write(t, filepath.Join(workspace, "out", fmt.Sprintf("%02d", i%100), fmt.Sprintf("file %d", i)), fmt.Sprintf("content %d\n", i))
	}
	write(t, filepath.Join(workspace, "out/empty"), "")
	write(t, filepath.Join(workspace, "out/large"), strings.Repeat("0123456789abcdef", (large+15)/16))
	write(t, filepath.Join(workspace, "tool"), "#!/bin/sh\n")
	if err := errors.Join(os.Chmod(filepath.Join(workspace, "tool"), 0o755), os.Symlink("empty", filepath.Join(workspace, "out/link"))); err != nil {
		t.Fatal(err)
	}
	return workspace
}

var left = []string{"out", "tool"}

// keep keeps what is in a workspace, and fails if the store is left alone for it.
func keep(t *testing.T, k *Keeper, id, workspace string) {
	t.Helper()
	if _, err := k.Keep(t.Context(), key(id), workspace, left, Bounds{}); err != nil {
		t.Fatal(err)
	}
	if !k.awake(time.Now()) {
		t.Fatal("the store is left alone")
	}
}

// found reports whether a machine finds what was kept, and fails if that is not what is in the workspace.
func found(t *testing.T, k *Keeper, id, workspace string) bool {
	t.Helper()
	to := t.TempDir()
	e, err := k.Find(t.Context(), key(id), left)
	if err == nil {
		err = k.Folder.Lay(t.Context(), to, e)
	}
	if errors.Is(err, ErrMissing) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if want, got := tree(t, workspace), tree(t, to); got != want {
		t.Fatalf("found:\n%.2000s\nkept:\n%.2000s", got, want)
	}
	return true
}

// tree describes all files below a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&text, "%s %v %v %x\n", name, info.Mode().Type(), info.Mode()&0o100 != 0, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestEachStoreKeepsOutputsOrNothing(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *store{"folder": sharedFolder, "HTTP": byHTTP, "gRPC": bazelByGRPC, "S3": fakeS3} {
		t.Run(name, func(t *testing.T) { conforms(t, open, 64, 300) })
	}
}

// conforms has a store do what all have to, with a file of large bytes. Faults on the line come after so many bytes.
func conforms(t *testing.T, open func(*testing.T) *store, large int, places ...int64) {
	t.Run("another machine finds what one has kept", func(t *testing.T) {
		s, workspace := open(t), leave(t, 50, mostBatched+1000)
		keep(t, s.machine(t, s.address), "a", workspace)
		other := s.machine(t, s.address)
		if !found(t, other, "a", workspace) {
			t.Error("nothing is found")
		}
		if found(t, other, "b", workspace) || !other.awake(time.Now()) {
			t.Error("what is not kept is found, or the store is left alone for it")
		}
	})
	for what, how := range map[string]func([]byte) []byte{
		"gone":      func([]byte) []byte { return nil },
		"altered":   func(c []byte) []byte { return alterAt(c, len(c)/2) },
		"truncated": func(c []byte) []byte { return c[:len(c)/2] },
		"longer":    func(c []byte) []byte { return append(c, c...) },
		"empty":     func([]byte) []byte { return []byte{} },
		"huge":      func(c []byte) []byte { return append(c, make([]byte, 2<<20)...) },
	} {
		if open(t).change == nil {
			break
		}
		for _, part := range []string{filesPart, entriesPart} {
			t.Run(part+" "+what, func(t *testing.T) {
				s, workspace := open(t), leave(t, 3, large)
				keep(t, s.machine(t, s.address), "a", workspace)
				s.change(t, part, how)
				other := s.machine(t, s.address)
				if found(t, other, "a", workspace) {
					// What follows the message of a result may be no message, or another one with the same meaning.
					if part != entriesPart || s.open == nil {
						t.Error("it is found")
					}
					return
				}
				if !other.awake(time.Now()) {
					t.Error("the store is left alone")
				}
				// A machine that misses it makes it again, and keeps it for all.
				keep(t, other, "a", workspace)
				if !found(t, s.machine(t, s.address), "a", workspace) {
					t.Error("what was made again is not found")
				}
			})
		}
	}
	t.Run("writers at once", func(t *testing.T) { writersAtOnce(t, open(t)) })
	if s := open(t); s.open != nil {
		t.Run("what is forged is not there", func(t *testing.T) { forged(t, s) })
		t.Run("faults on the line", func(t *testing.T) { faultsOnTheLine(t, open, large, places...) })
		t.Run("one that is away", func(t *testing.T) { away(t, s) })
	}
}

func alterAt(content []byte, at int) []byte {
	if len(content) > 0 {
		content[at] ^= 1
	}
	return content
}

// writersAtOnce keep different outputs of one version, as steps whose results differ do. Whoever looks meanwhile finds those of one.
func writersAtOnce(t *testing.T, s *store) {
	var workspaces []string
	wanted := map[string]bool{}
	for i := range 4 {
		workspace := leave(t, 4, 64)
		write(t, filepath.Join(workspace, "out/which"), fmt.Sprint(i))
		workspaces, wanted[tree(t, workspace)] = append(workspaces, workspace), true
	}
	var all sync.WaitGroup
	for _, workspace := range workspaces {
		writer, reader := s.machine(t, s.address), s.machine(t, s.address)
		all.Go(func() {
			for range 5 {
				if _, err := writer.Keep(t.Context(), key("a"), workspace, left, Bounds{}); err != nil {
					t.Error(err)
				}
			}
		})
		to := t.TempDir()
		all.Go(func() {
			for i := range 5 {
				e, err := reader.Find(t.Context(), key("a"), left)
				if errors.Is(err, ErrMissing) {
					continue
				}
				dir := filepath.Join(to, fmt.Sprint(i))
				if err == nil {
					err = errors.Join(os.Mkdir(dir, 0o755), reader.Folder.Lay(t.Context(), dir, e))
				}
				if err != nil || !wanted[tree(t, dir)] {
					t.Errorf("it finds what nobody kept: %v", err)
				}
			}
		})
		t.Cleanup(func() {
			if !writer.awake(time.Now()) || !reader.awake(time.Now()) {
				t.Error("the store is left alone")
			}
		})
	}
	all.Wait()
}

func forged(t *testing.T, s *store) {
	workspace := leave(t, 3, 64)
	one, remote := s.machine(t, s.address), s.open(t, s.address)
	keep(t, one, "a", workspace)
	keep(t, one, "b", workspace)
	entry, err := remote.Entry(t.Context(), key("a"))
	if err != nil {
		t.Fatal(err)
	}
	outward, err := entryOf(link("out/l", "../../../etc/passwd"), file("tool")).encode()
	if err != nil {
		t.Fatal(err)
	}
	for what, content := range map[string][]byte{
		"an entry of another version": entry,
		"an entry without a seal":     entry[32:],
		"a link out of the workspace": one.Seal.seal(key("b"), outward),
		"a sealed nothing":            one.Seal.seal(key("b"), nil),
	} {
		if err := remote.PutEntry(t.Context(), key("b"), content, nil); err != nil {
			t.Fatal(what, err)
		}
		if found(t, s.machine(t, s.address), "b", workspace) {
			t.Errorf("%s is taken", what)
		}
	}
	stranger := s.machine(t, s.address)
	stranger.Seal = NewSeal([]byte("another key of some length"))
	if found(t, stranger, "a", workspace) {
		t.Error("somebody with another key takes it")
	}
}

// faultsOnTheLine spoils connections, while outputs are kept and while they are looked for. Machines find what was kept or nothing, and
// all is well again once the line is.
func faultsOnTheLine(t *testing.T, open func(*testing.T) *store, large int, places ...int64) {
	s := open(t)
	l := openLine(t, s.address)
	workspace := leave(t, 10, large)
	keep(t, s.machine(t, l.address), "kept", workspace)
	n := 0
	for _, what := range []string{"cut", "alter", "stall"} {
		for _, up := range []bool{true, false} {
			for _, after := range places {
				l.spoil(&fault{up: up, after: after, what: what})
				name := fmt.Sprintf("%s %v after %d", what, up, after)
				n++
				writer, reader := s.machine(t, l.address), s.machine(t, l.address)
				writer.Patience, reader.Patience = 300*time.Millisecond, 300*time.Millisecond
				id := fmt.Sprint("new", n)
				own := leave(t, 2, large)
				write(t, filepath.Join(own, "out/which"), id)
				if _, err := writer.Keep(t.Context(), key(id), own, left, Bounds{}); err != nil {
					t.Fatal(name, err)
				}
				found(t, reader, "kept", workspace)
				if !found(t, writer, id, own) {
					t.Errorf("%s: the machine's own folder does not help", name)
				}
				l.spoil(nil)
				found(t, s.machine(t, l.address), id, own) // as far as it came, and nothing else
				again := s.machine(t, l.address)
				if found(t, again, id, own); !again.awake(time.Now()) {
					t.Errorf("%s: the store is left alone once the line is well", name)
				}
				keep(t, again, id, own)
				if !found(t, s.machine(t, l.address), id, own) || !found(t, s.machine(t, l.address), "kept", workspace) {
					t.Errorf("%s: outputs are not found once the line is well", name)
				}
			}
		}
	}
}

// away: who has to do with a store that is away, or refuses, has it once, and keeps what it has itself.
func away(t *testing.T, s *store) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it takes connections, and answers nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for name, address := range map[string]string{"nobody listens": nobody.Addr().String(), "it does not answer": silent.Addr().String()} {
		k, workspace := s.machine(t, address), leave(t, 3, 64)
		k.Patience = 300 * time.Millisecond
		counted := &counting{Remote: k.Remote}
		k.Remote = counted
		for range 3 {
			if _, err := k.Keep(t.Context(), key("a"), workspace, left, Bounds{}); err != nil {
				t.Fatal(name, err)
			}
			if !found(t, k, "a", workspace) || found(t, k, "b", workspace) {
				t.Errorf("%s: the machine's own folder does not help", name)
			}
		}
		if k.awake(time.Now()) || counted.entries > 0 {
			t.Errorf("%s: it is asked again, %d times", name, counted.entries)
		}
		if err := Try(timeout(t, time.Second), k.Remote, k.Seal); err == nil {
			t.Errorf("%s: that is not found", name)
		}
	}
	if err := Try(t.Context(), s.open(t, s.address), NewSeal([]byte("secret"))); err != nil {
		t.Errorf("one that is there: %v", err)
	}
}

// counting counts how often entries were asked for.
type counting struct {
	Remote
	entries int
}

func (c *counting) Entry(ctx context.Context, id string) ([]byte, error) {
	c.entries++
	return c.Remote.Entry(ctx, id)
}

func timeout(t *testing.T, after time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), after)
	t.Cleanup(cancel)
	return ctx
}
