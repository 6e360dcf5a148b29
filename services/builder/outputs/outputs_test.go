package outputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"landfall.build/platform/retention"
)

var hash = strings.Repeat("0", 64)

func file(path string) File       { return File{Path: path, Digest: Digest{Hash: hash, Size: 1}} }
func link(path, to string) File   { return File{Path: path, Link: to} }
func entryOf(files ...File) Entry { return Entry{Files: files} }
func key(text string) string      { return fmt.Sprintf("%064x", text) }
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) *Folder {
	t.Helper()
	f, err := OpenFolder(filepath.Join(t.TempDir(), "outputs"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAnEntryThatNoStepCanHaveLeftIsNone(t *testing.T) {
	outputs := []string{"bin/app", "gen"}
	right := []Entry{
		entryOf(file("bin/app"), file("gen/a")),
		entryOf(file("bin/app"), file("gen/a/b/c"), link("gen/a/l", "b/c"), link("gen/up", "a/../a/b/c")),
		entryOf(file("bin/app"), file("gen/a/b"), link("gen/l", ".")),
	}
	right[1].Files[3].Link = "a/b" // up is allowed only before anything else
	for i, e := range right {
		if err := e.check(outputs); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	for want, e := range map[string]Entry{
		`"etc/passwd" is in none`:      entryOf(file("bin/app"), file("etc/passwd"), file("gen/a")),
		`"gen/../x" is in none`:        entryOf(file("bin/app"), file("gen/../x")),
		`"/gen/a" is in none`:          entryOf(file("/gen/a"), file("bin/app")),
		`"bin/apple" is in none`:       entryOf(file("bin/app"), file("bin/apple"), file("gen/a")),
		`"../gen/a" is in none`:        entryOf(file("../gen/a"), file("bin/app")),
		`its files are not in order`:   entryOf(file("gen/a"), file("bin/app")),
		`it has nothing of gen`:        entryOf(file("bin/app")),
		`"gen/a/b" lies below a file`:  entryOf(file("bin/app"), link("gen/a", "c"), file("gen/a/b"), file("gen/c")),
		`"gen/l" leads out of gen`:     entryOf(file("bin/app"), link("gen/l", "../x")),
		`"gen/m" leads out of gen`:     entryOf(file("bin/app"), link("gen/m", "/gen/a")),
		`"gen/n" leads out of gen`:     entryOf(file("bin/app"), link("gen/n", "a/../../x")),
		`"gen/o" leads out of gen`:     entryOf(file("bin/app"), link("gen/o", "../bin/app")),
		`"gen/p" is a link and a file`: entryOf(file("bin/app"), File{Path: "gen/p", Link: "a", Digest: Digest{Hash: hash}}),
		`"gen/q" has no digest`:        entryOf(file("bin/app"), File{Path: "gen/q", Digest: Digest{Hash: strings.Repeat("/", 64)}}),
		`"gen/r" has no digest`:        entryOf(file("bin/app"), File{Path: "gen/r"}),
	} {
		if err := e.check(outputs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestWhatIsLaidIsWhatWasLeft(t *testing.T) {
	f, from, to := open(t), t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "out/a b/ü"), "one")
	write(t, filepath.Join(from, "out/empty"), "")
	write(t, filepath.Join(from, "tool"), "#!/bin/sh\n")
	if err := errors.Join(os.Chmod(filepath.Join(from, "tool"), 0o750), os.Symlink("../a b/ü", filepath.Join(from, "out/a b/link"))); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(from, "out/a b/link")), os.Symlink("../a b/ü", filepath.Join(from, "out/link"))); err != nil {
		t.Fatal(err)
	}
	outputs := []string{"out", "tool"}
	if _, err := f.Keep(t.Context(), key("a"), from, outputs, Bounds{}); !isFault(err, `left out/link, a link to "../a b/ü", which leads out of the output out`) {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(from, "out/link")), os.Symlink("../empty", filepath.Join(from, "out/a b/link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Keep(t.Context(), key("a"), from, outputs, Bounds{}); err != nil {
		t.Fatal(err)
	}
	e, err := f.entry(key("a"), outputs)
	if err != nil || e.String() != "4 files, 13 bytes" {
		t.Fatal(e, err)
	}
	if err := f.Lay(t.Context(), to, e); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"out/a b/ü": "one", "out/empty": "", "out/a b/link": "", "tool": "#!/bin/sh\n"} {
		content, err := os.ReadFile(filepath.Join(to, path))
		if err != nil || string(content) != want {
			t.Errorf("%s: %q, %v", path, content, err)
		}
		info, _ := os.Lstat(filepath.Join(to, path))
		if executable := info.Mode()&0o100 != 0 && info.Mode().IsRegular(); executable != (path == "tool") {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
	}
	if _, err := f.entry(key("a"), []string{"out"}); !errors.Is(err, ErrMissing) {
		t.Errorf("an entry with files of no output: %v", err)
	}
	if _, err := f.entry(key("b"), outputs); !errors.Is(err, ErrMissing) {
		t.Errorf("an entry of nobody: %v", err)
	}
}

func TestOutputsNestedTooDeepAreRefused(t *testing.T) {
	f, from := open(t), t.TempDir()
	write(t, filepath.Join(from, "out", strings.Repeat("d/", mostDeep-1), "x"), "")
	if _, err := f.Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{}); err != nil {
		t.Error(err)
	}
	write(t, filepath.Join(from, "out", strings.Repeat("d/", mostDeep), "x"), "")
	if _, err := f.Keep(t.Context(), key("b"), from, []string{"out"}, Bounds{}); !isFault(err, "left folders nested deeper than 100") {
		t.Error(err)
	}
}

// TestAnOutputThatIsAPipeIsRefused: to open a pipe waits for somebody who writes to it.
func TestAnOutputThatIsAPipeIsRefused(t *testing.T) {
	f, from := open(t), t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(from, "out"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{}); !isFault(err, "left out, which is neither file nor folder but a pipe") {
		t.Error(err)
	}
}

func isFault(err error, message string) bool {
	fault, is := errors.AsType[*Fault](err)
	return is && fault.Message == message
}

// A workspace may hold links of the tree. Nothing is laid through one.
func TestNothingIsLaidOutsideOfTheWorkspace(t *testing.T) {
	f, from, to, outside := open(t), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "out/a"), "one")
	e, err := f.Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(to, "out")); err != nil {
		t.Fatal(err)
	}
	if err := f.Lay(t.Context(), to, e); err == nil {
		t.Error("it is laid through a link")
	}
	if list, _ := os.ReadDir(outside); len(list) > 0 {
		t.Error("something is there")
	}
}

func TestTheLeastRecentlyUsedGoFirst(t *testing.T) {
	f, from := open(t), t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(from, name), strings.Repeat(name, 100_000))
		if _, err := f.Keep(t.Context(), key(name), from, []string{name}, Bounds{}); err != nil {
			t.Fatal(err)
		}
	}
	hours := map[string]int{"a": 3, "b": 2, "c": 1}
	for name, ago := range hours {
		at := time.Now().Add(-time.Duration(ago) * time.Hour)
		e, err := f.entry(key(name), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chtimes(f.place(entriesPart, key(name)), at, at), os.Chtimes(f.place(filesPart, e.Files[0].Hash), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	e, err := f.entry(key("a"), []string{"a"}) // the oldest is used
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Lay(t.Context(), t.TempDir(), e); err != nil {
		t.Fatal(err)
	}
	deleted, left, err := f.Trim(t.Context(), Limits{Age: 90 * time.Minute, Size: 150_000}, time.Now())
	if err != nil || left > 150_000 || len(deleted) < 3 {
		t.Fatal(deleted, left, err)
	}
	for name, want := range map[string]bool{"a": true, "b": false, "c": false} {
		e, err := f.entry(key(name), []string{name})
		if got := err == nil && f.has(e.Files[0].Digest); got != want {
			t.Errorf("%s is there: %v, want %v", name, got, want)
		}
	}
}

// A worker trims when it has kept much, and so does the service once in a while.
func TestWhoTrimsBesideAnotherReportsNothing(t *testing.T) {
	k, from := keeper(t, nil), t.TempDir()
	for i := range 300 {
		write(t, filepath.Join(from, "out", fmt.Sprint(i)), fmt.Sprint(i))
	}
	if _, err := k.Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{}); err != nil {
		t.Fatal(err)
	}
	lefts := make(chan int64, 100)
	k.Trimmed = func(_ []retention.Victim, left int64, err error) {
		if err != nil {
			t.Error(err)
		}
		lefts <- left
	}
	var all sync.WaitGroup
	for range cap(lefts) {
		all.Go(func() { k.Trim(t.Context()) })
	}
	all.Wait()
	close(lefts)
	n := 0
	for left := range lefts {
		if n++; left == 0 {
			t.Fatal("nothing is said to be left")
		}
	}
	if n == 0 {
		t.Error("nobody has trimmed")
	}
}

// memory is a remote that can be made to fail, to hang and to lie.
type memory struct {
	entries map[string][]byte
	files   map[string][]byte
	fails   error
	hangs   bool
	asked   int
}

func (m *memory) trouble(ctx context.Context) error {
	m.asked++
	if m.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return m.fails
}

func (m *memory) Entry(ctx context.Context, id string) ([]byte, error) {
	content, there := m.entries[id]
	if !there {
		return nil, errors.Join(ErrMissing, m.trouble(ctx))
	}
	return content, m.trouble(ctx)
}

func (m *memory) PutEntry(ctx context.Context, id string, content []byte, _ []Digest) error {
	m.entries[id] = content
	return m.trouble(ctx)
}

func (m *memory) File(ctx context.Context, d Digest) (io.ReadCloser, error) {
	content, there := m.files[d.Hash]
	if !there {
		return nil, ErrMissing
	}
	return io.NopCloser(strings.NewReader(string(content))), m.trouble(ctx)
}

func (m *memory) PutFile(ctx context.Context, d Digest, content io.ReadSeeker, _ bool) error {
	m.files[d.Hash], _ = io.ReadAll(content)
	return m.trouble(ctx)
}

func newMemory() *memory { return &memory{entries: map[string][]byte{}, files: map[string][]byte{}} }

func keeper(t *testing.T, remote Remote) *Keeper {
	return &Keeper{Folder: open(t), Limits: Limits{Age: time.Hour, Size: 1 << 30}, Remote: remote, Patience: time.Minute, Rest: time.Hour,
		Seal: NewSeal([]byte("secret")), Logger: slog.New(slog.DiscardHandler)}
}

func TestMachinesFindEachOthersOutputsByTheRemote(t *testing.T) {
	remote, from := newMemory(), t.TempDir()
	write(t, filepath.Join(from, "out/a"), "one")
	if _, err := keeper(t, remote).Keep(t.Context(), key("a"), from, []string{"out"}, Bounds{}); err != nil {
		t.Fatal(err)
	}
	other := keeper(t, remote)
	e, err := other.Find(t.Context(), key("a"), []string{"out"})
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := other.Folder.Lay(t.Context(), to, e); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(filepath.Join(to, "out/a")); err != nil || string(content) != "one" {
		t.Errorf("%q, %v", content, err)
	}
}

func TestWhatTheRemoteForgesIsNotThere(t *testing.T) {
	for name, forge := range map[string]func(m *memory){
		"another content": func(m *memory) {
			for h := range m.files {
				m.files[h] = []byte("two")
			}
		},
		"a longer content": func(m *memory) {
			for h := range m.files {
				m.files[h] = []byte(strings.Repeat("one", 1000))
			}
		},
		"no content":            func(m *memory) { clear(m.files) },
		"another's entry":       func(m *memory) { m.entries[key("a")] = m.entries[key("b")] },
		"an entry without seal": func(m *memory) { m.entries[key("a")] = m.entries[key("a")][32:] },
		"an altered entry":      func(m *memory) { m.entries[key("a")][40] ^= 1 },
		"nothing":               func(m *memory) { m.entries[key("a")] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			remote := newMemory()
			for id, content := range map[string]string{"a": "one", "b": "another"} {
				from := t.TempDir()
				write(t, filepath.Join(from, "out/a"), content)
				if _, err := keeper(t, remote).Keep(t.Context(), key(id), from, []string{"out"}, Bounds{}); err != nil {
					t.Fatal(err)
				}
			}
			forge(remote)
			if e, err := keeper(t, remote).Find(t.Context(), key("a"), []string{"out"}); !errors.Is(err, ErrMissing) {
				t.Errorf("%v, %v", e, err)
			}
		})
	}
}

func TestARemoteThatFailsOrHangsIsLeftAloneForAWhile(t *testing.T) {
	for name, spoil := range map[string]func(m *memory){"fails": func(m *memory) { m.fails = errors.New("full") }, "hangs": func(m *memory) { m.hangs = true }} {
		t.Run(name, func(t *testing.T) {
			remote := newMemory()
			spoil(remote)
			k, from := keeper(t, remote), t.TempDir()
			k.Patience = 50 * time.Millisecond
			write(t, filepath.Join(from, "out/a"), "one")
			for _, id := range []string{"a", "b", "c"} {
				if _, err := k.Keep(t.Context(), key(id), from, []string{"out"}, Bounds{}); err != nil {
					t.Fatal(err)
				}
				if _, err := k.Find(t.Context(), key(id), []string{"out"}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := k.Find(t.Context(), key("d"), []string{"out"}); !errors.Is(err, ErrMissing) {
				t.Error(err)
			}
			if remote.asked != 1 {
				t.Errorf("it was asked %d times", remote.asked)
			}
		})
	}
}

// TestAnEntryThatCouldNotBeReadIsNotKept: its names are too long together.
func TestAnEntryThatCouldNotBeReadIsNotKept(t *testing.T) {
	f, err := OpenFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := Entry{}
	for i := range mostFiles {
		e.Files = append(e.Files, File{Path: strings.Repeat("d/", 700) + strconv.Itoa(i)})
	}
	if err := f.putEntry(strings.Repeat("a", 64), e); err != errTooLarge {
		t.Errorf("an entry of that size: %v", err)
	}
}
