// Package refusals keeps who was refused what, apart from the gateway's ordinary log, and within bounds: a flood of wrong tokens fills no
// disk, and leaves the lines of others there.
package refusals

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// FileName is the file of the newest lines in its folder, and olderName that of those before them.
	FileName  = "refusals.jsonl"
	olderName = "refusals.1.jsonl"
	// maxFileBytes is the size of each of the two files.
	maxFileBytes = 64 << 20
	// linesPerSecond bounds the lines of all callers together, and linesAtOnce how many may come at once.
	linesPerSecond = 5
	linesAtOnce    = 1000
)

// Refusal is one request that was refused. Its texts are of one line, and bounded by whoever makes it.
type Refusal struct {
	// Request is the id that the answer has. Method and Path say what was asked for, and Address from where.
	Request, Method, Path, Address string
	// Issuer and Subject are who asked, by the token of an id and with a program; "" if that is not known.
	Issuer, Subject, Token, Client string
	// Code and Reason are those of the answer.
	Code, Reason string
}

// Log is where refusals are written. It is safe for concurrent use.
type Log struct {
	to    *slog.Logger
	limit *rate.Limiter

	mu      sync.Mutex
	leftOut int
}

// New returns a log that writes its lines to a logger.
func New(to *slog.Logger) *Log {
	return &Log{to: to, limit: rate.NewLimiter(linesPerSecond, linesAtOnce)}
}

// Open returns a log in a folder, which it makes: refusals.jsonl, a JSON object a line, for the owner alone. Once that has 64 MiB, it takes
// the place of refusals.1.jsonl. What cannot be written later is said to the logger. The error is that of the folder or the file.
func Open(folder string, logger *slog.Logger) (*Log, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("log of refusals: %w", err)
	}
	f := &file{folder: folder, most: maxFileBytes, logger: logger}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("log of refusals: %w", err)
	}
	return New(slog.New(slog.NewJSONHandler(f, nil))), nil
}

// Write writes a refusal, unless there were too many: then the next line that is written says how many are left out.
func (l *Log) Write(r Refusal, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.AllowN(now, 1) {
		l.leftOut++
		return
	}
	attributes := []slog.Attr{
		slog.String("request", r.Request), slog.String("method", r.Method), slog.String("path", r.Path), slog.String("address", r.Address),
		slog.Group("who", slog.String("issuer", r.Issuer), slog.String("subject", r.Subject), slog.String("token", r.Token), slog.String("client", r.Client)),
		slog.String("code", r.Code), slog.String("reason", r.Reason),
	}
	if l.leftOut > 0 {
		attributes = append(attributes, slog.Int("left_out", l.leftOut))
		l.leftOut = 0
	}
	l.to.LogAttrs(context.Background(), slog.LevelWarn, "request refused", attributes...)
}

// LeaveOut counts a refusal that gets no line.
func (l *Log) LeaveOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leftOut++
}

// file is the two files of a folder. Its handler writes one line at a time.
type file struct {
	folder string
	most   int64
	logger *slog.Logger

	now    *os.File
	size   int64
	failed bool
}

func (f *file) open() error {
	now, err := os.OpenFile(filepath.Join(f.folder, FileName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := now.Stat()
	if err != nil {
		now.Close()
		return err
	}
	f.now, f.size = now, info.Size()
	return nil
}

// Write appends a line. After an error the next line opens the file again.
func (f *file) Write(line []byte) (int, error) {
	n, err := f.append(line)
	if err != nil {
		if f.now != nil {
			f.now.Close()
			f.now = nil
		}
		if !f.failed {
			f.logger.Error("refusals cannot be written", "folder", f.folder, "error", err)
		}
	}
	f.failed = err != nil
	return n, err
}

func (f *file) append(line []byte) (int, error) {
	if f.now != nil && f.size+int64(len(line)) > f.most {
		if err := f.turn(); err != nil {
			return 0, err
		}
	}
	if f.now == nil {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.now.Write(line)
	f.size += int64(n)
	return n, err
}

// turn puts the full file in the place of the older one, unless another gateway with the same folder has done so.
func (f *file) turn() error {
	path := filepath.Join(f.folder, FileName)
	mine, err := f.now.Stat()
	if err != nil {
		return err
	}
	f.now.Close()
	f.now = nil
	if there, err := os.Stat(path); err != nil || !os.SameFile(mine, there) {
		return nil
	}
	return os.Rename(path, filepath.Join(f.folder, olderName))
}
