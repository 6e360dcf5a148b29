// Package clickhouse is the embedded ClickHouse: the real server, out of libchdb, in a supervised child process
// with a data directory, for a laptop, the demo and the tests. It listens on loopback, and looks to every client
// like any other server. It keeps every acknowledged row across a kill -9 of it or of landfall.
//
// It is one process on one machine without replication, and may be missing: see ErrNotInstalled.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of a server.
type Options struct {
	// Dir is the data directory; it is made if it does not exist. Required.
	Dir string
	// Log is required.
	Log *slog.Logger
	// Memory bounds what the server takes, in bytes; 2 GiB if 0. A query that needs more fails.
	Memory int64
}

const (
	defaultMemory = 2 << 30
	// startPatience bounds one start. A server that was killed checks its parts first.
	startPatience = time.Minute
	// startTries is for a directory that the server of a killed landfall is about to release.
	startTries   = 5
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 10 * time.Second
	// closePatience is how long an orderly end may take.
	closePatience = 10 * time.Second
)

// Server is a running server. If its process ends, it is started again, on the same ports.
type Server struct {
	options     Options
	library     library
	lock        *os.File
	native, web string
	dsn         string
	// confined is set if the server reaches no files but its own.
	confined bool
	stop     context.CancelFunc
	ended    chan struct{}
	process  atomic.Int64
	once     sync.Once
}

// Start starts the server and returns once it answers. The error is ErrNotInstalled where the library is missing.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Dir == "" || o.Log == nil {
		return nil, errors.New("embedded ClickHouse: a data directory and a logger are needed")
	}
	found, err := installed()
	if err != nil {
		return nil, err
	}
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded ClickHouse: %w", err)
	}
	s := &Server{options: o, library: found, ended: make(chan struct{})}
	if s.lock, err = lockDir(o.Dir); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		s.lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) begin(ctx context.Context) error {
	// The server's function file() opens any file for whoever may ask anything: there is an analyst only where it reaches none.
	if out, err := exec.CommandContext(ctx, s.library.host, "--can-confine").CombinedOutput(); err == nil {
		s.confined = true
	} else {
		s.options.Log.Warn("the embedded ClickHouse has no user analyst, who could read every file here (if the host is older than this landfall, make clickhouse renews it)",
			"error", err, "host", strings.TrimSpace(string(out)))
	}
	password, err := writeSettings(s.options.Dir, s.options.Memory, s.confined)
	if err != nil {
		return err
	}
	if s.native, s.web, err = ports(s.options.Dir); err != nil {
		return err
	}
	at := url.URL{Scheme: "clickhouse", User: url.UserPassword(user, password), Host: "127.0.0.1:" + s.native, Path: "/" + databaseName}
	s.dsn = at.String()
	var run *child
	for try := 1; ; try++ {
		if run, err = s.startChild(ctx); err == nil {
			break
		}
		if try == startTries || ctx.Err() != nil {
			return err
		}
		s.options.Log.Debug("embedded ClickHouse did not start; trying again", "error", err)
		if pause(ctx, time.Duration(try)*500*time.Millisecond) != nil {
			return ctx.Err()
		}
	}
	if err := writeFile(filepath.Join(s.options.Dir, DSNFile), s.dsn+"\n"); err != nil {
		run.end()
		return err
	}
	supervision, stop := context.WithCancel(context.Background())
	s.stop = stop
	go s.supervise(supervision, run)
	return nil
}

// DSN returns how clients of the native protocol reach the server, password included. The database that it names
// may not exist yet.
func (s *Server) DSN() string { return s.dsn }

// ErrNoAnalyst is returned by AnalystDSN where the kernel cannot keep the server from files: there is no analyst then.
var ErrNoAnalyst = errors.New("the embedded ClickHouse has no user analyst here")

// AnalystDSN returns how the analyst reaches the history, password included. The error is ErrNoAnalyst, or says that the file with the
// password cannot be read.
func (s *Server) AnalystDSN() (string, error) {
	if !s.confined {
		return "", ErrNoAnalyst
	}
	password, err := os.ReadFile(filepath.Join(s.options.Dir, AnalystFile))
	at := url.URL{Scheme: "clickhouse", User: url.UserPassword(Analyst, strings.TrimSpace(string(password))), Host: "127.0.0.1:" + s.native, Path: "/" + databaseName}
	return at.String(), err
}

// HTTP returns the address at which the server speaks HTTP, http://127.0.0.1:port.
func (s *Server) HTTP() string { return "http://127.0.0.1:" + s.web }

// Process returns the id of the server's process at the moment, for tests that kill it.
func (s *Server) Process() int { return int(s.process.Load()) }

// Close ends the server and releases the directory. What was acknowledged is kept.
func (s *Server) Close() {
	s.once.Do(func() {
		s.stop()
		<-s.ended
		os.Remove(filepath.Join(s.options.Dir, DSNFile))
		s.lock.Close()
	})
}

// supervise keeps a child running until ctx ends.
func (s *Server) supervise(ctx context.Context, run *child) {
	defer close(s.ended)
	backoff := firstBackoff
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			run.end()
			return
		case <-run.ended:
		}
		s.options.Log.Warn("embedded ClickHouse ended; it is started again", "error", run.err())
		for {
			if time.Since(began) > time.Minute {
				backoff = firstBackoff
			}
			if pause(ctx, backoff) != nil {
				return
			}
			backoff = min(2*backoff, lastBackoff)
			next, err := s.startChild(ctx)
			if err == nil {
				run = next
				break
			}
			if ctx.Err() != nil {
				return
			}
			s.options.Log.Error("embedded ClickHouse does not start; the queue goes on without it", "in", backoff.String(), "error", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// child is one process of the server.
type child struct {
	command  *exec.Cmd
	terminal io.Closer
	output   *tail
	ended    chan struct{}
	result   error
}

// startChild returns once the server answers. The exit code does not matter: a locked directory ends with 0.
func (s *Server) startChild(ctx context.Context) (*child, error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, fmt.Errorf("embedded ClickHouse: %w", err)
	}
	defer slave.Close()
	c := &child{terminal: master, output: &tail{}, ended: make(chan struct{})}
	var within []string
	if s.confined {
		within = []string{"--within", s.options.Dir}
	}
	c.command = exec.Command(s.library.host, append(within, s.library.shared,
		"--path", filepath.Join(s.options.Dir, "data"), "--config-file", filepath.Join(s.options.Dir, "config.xml"),
		"--listen_host", "127.0.0.1", "--tcp_port", s.native, "--http_port", s.web,
		"--interactive", "--history_file", os.DevNull, "--disable_suggestion",
		"--query", "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP")...)
	c.command.Dir = s.options.Dir
	c.command.Env = []string{"HOME=" + s.options.Dir, "TERM=dumb", "TZ=UTC", "GODEBUG=asyncpreemptoff=1"}
	c.command.Stdin, c.command.Stdout, c.command.Stderr = slave, c.output, c.output
	// A session of its own, with the terminal: a Ctrl-C meant for landfall is not the server's, and the
	// terminal's end is.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := c.command.Start(); err != nil {
		master.Close()
		return nil, fmt.Errorf("embedded ClickHouse: %w", err)
	}
	s.process.Store(int64(c.command.Process.Pid))
	go func() {
		c.result = c.command.Wait()
		close(c.ended)
	}()
	if err := s.awaitReady(ctx, c); err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

func (s *Server) awaitReady(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, Proxy: nil}, Timeout: time.Second}
	for {
		select {
		case <-c.ended:
			return fmt.Errorf("embedded ClickHouse ended at its start: %w", c.err())
		case <-ctx.Done():
			return fmt.Errorf("embedded ClickHouse did not answer within %s: %w", startPatience, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
		answer, err := client.Get("http://127.0.0.1:" + s.web + "/ping")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return nil
		}
	}
}

// end closes the terminal, which ends the server in order, and kills it if that takes too long.
func (c *child) end() {
	c.terminal.Close()
	select {
	case <-c.ended:
		return
	case <-time.After(closePatience):
	}
	c.command.Process.Kill()
	<-c.ended
}

// err returns how the process ended, with the end of its output. Call it after the process has ended.
func (c *child) err() error {
	c.terminal.Close()
	how := "without an error"
	if c.result != nil {
		how = c.result.Error()
	}
	if said := c.output.String(); said != "" {
		return fmt.Errorf("%s; its last output: %s", how, said)
	}
	return errors.New(how)
}
