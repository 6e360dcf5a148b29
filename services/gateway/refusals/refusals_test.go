package refusals

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// TestAFloodOfRefusalsLeavesFewLines and says how many are left out.
func TestAFloodOfRefusalsLeavesFewLines(t *testing.T) {
	var text bytes.Buffer
	l := New(slog.New(slog.NewTextHandler(&text, nil)))
	const each, seconds = 10_000, 10
	for second := range seconds {
		for range each {
			l.Write(Refusal{Address: "192.0.2.1"}, noon.Add(time.Duration(second)*time.Second))
		}
	}
	const most = linesAtOnce + linesPerSecond*(seconds-1)
	if lines := strings.Count(text.String(), "\n"); lines != most {
		t.Errorf("%d lines of %d refusals, want %d", lines, each*seconds, most)
	}
	if want := fmt.Sprintf("left_out=%d", each-linesPerSecond); !strings.Contains(text.String(), want) {
		t.Errorf("no line says %s", want)
	}
}

func TestTheFilesAreBoundedAndForTheirOwner(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "refusals")
	var complaints bytes.Buffer
	if _, err := Open(folder, slog.New(slog.NewTextHandler(&complaints, nil))); err != nil {
		t.Fatal(err)
	}
	f := &file{folder: folder, most: 1000, logger: slog.New(slog.NewTextHandler(&complaints, nil))}
	l := New(slog.New(slog.NewJSONHandler(f, nil)))
	for n := range 500 {
		l.Write(Refusal{Request: fmt.Sprint(n), Reason: "the token\nhas expired"}, noon)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 {
		t.Fatalf("%v, %v", entries, err)
	}
	var newest struct{ Request string }
	for _, name := range []string{olderName, FileName} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Size() > 1000 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		text, _ := os.ReadFile(filepath.Join(folder, name))
		for line := range bytes.Lines(text) {
			if err := json.Unmarshal(line, &newest); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if newest.Request != "499" {
		t.Errorf("the newest line is of %s", newest.Request)
	}
	if complaints.Len() > 0 {
		t.Errorf("complaints: %s", &complaints)
	}
}

// TestWhatCannotBeWrittenIsSaidOnce, and written again once that is possible.
func TestWhatCannotBeWrittenIsSaidOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "refusals")
	var complaints bytes.Buffer
	f := &file{folder: folder, most: 1000, logger: slog.New(slog.NewTextHandler(&complaints, nil))}
	for range 3 {
		if _, err := io.WriteString(f, "line\n"); err == nil {
			t.Fatal("a line is written into a folder that is not there")
		}
	}
	if n := strings.Count(complaints.String(), "refusals cannot be written"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, "line\n"); err != nil {
		t.Error(err)
	}
}

// TestTwoGatewaysOfOneFolderTurnItOnce: the second one finds that the file is another one, and goes on in that.
func TestTwoGatewaysOfOneFolderTurnItOnce(t *testing.T) {
	folder := t.TempDir()
	one, two := &file{folder: folder, most: 100, logger: slog.New(slog.DiscardHandler)}, &file{folder: folder, most: 100, logger: slog.New(slog.DiscardHandler)}
	line := strings.Repeat("x", 59) + "\n"
	for _, f := range []*file{one, two, one, two} {
		if _, err := io.WriteString(f, line); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int64{olderName: 120, FileName: 120} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() != want {
			t.Errorf("%s: %v, %v, want %d bytes", name, info, err, want)
		}
	}
}
