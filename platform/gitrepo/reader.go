package gitrepo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxObjectBytes bounds the trees and commits that are read whole; blobs have the bound
// that their reader states.
const maxObjectBytes = 64 << 20

// errTooMuch is why objects are not read that are too large together.
var errTooMuch = fmt.Errorf("all objects that are to be read together: %w", ErrTooLarge)

// object is git's answer for one name.
type object struct {
	id, kind string // kind is "" when there is no such object
	size     int64
	body     []byte // only where contents were asked for
}

// reader is one long-lived `git cat-file --batch-command` process. One goroutine uses it
// at a time.
type reader struct {
	cmd    *exec.Cmd
	in     *bufio.Writer
	out    *bufio.Reader
	stderr *boundedBuffer // to be read once the process has ended
	memory uint64         // its bound, 0 if the system keeps none
	end    sync.Once
	old    time.Time
}

// readerAge is how long a reader is used. It keeps the packs open that it has read, and the disk their room, even if they
// have been deleted.
const readerAge = 5 * time.Minute

// errReaderDied marks failures of the process itself, after which another one can serve
// the same request.
var errReaderDied = errors.New("git cat-file ended")

func (r *Repo) startReader(ctx context.Context) (*reader, error) {
	cmd := r.command(ctx, invocation{args: []string{"cat-file", "--batch-command", "--buffer"}})
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr := &boundedBuffer{bound: stderrBound}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start git cat-file in %s: %w", r.dir, err)
	}
	p := &reader{cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewReaderSize(out, 64<<10), stderr: stderr, old: time.Now().Add(readerAge)}
	if boundMemory(cmd.Process.Pid, r.gitMemory) {
		p.memory = r.gitMemory
	}
	time.AfterFunc(readerAge, func() { r.readers.retire(p) })
	return p, nil
}

func (p *reader) stop() {
	p.end.Do(func() {
		killGroup(p.cmd)
		p.cmd.Wait()
	})
}

// ask puts all names to git and returns its answers in their order, with contents of at most so many bytes together; 0 is without
// contents. git queues what it is asked until the flush, so writing first and reading then cannot deadlock.
func (p *reader) ask(names []string, contents int) ([]object, error) {
	verb := "info "
	if contents > 0 {
		verb = "contents "
	}
	for _, name := range names {
		p.in.WriteString(verb)
		p.in.WriteString(name)
		p.in.WriteByte('\n')
	}
	p.in.WriteString("flush\n")
	if err := p.in.Flush(); err != nil {
		return nil, fmt.Errorf("%w: %w", errReaderDied, err)
	}
	answers, left := make([]object, len(names)), int64(contents)
	for i := range names {
		line, err := p.out.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errReaderDied, err)
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " ")
		if len(fields) < 3 || !IsID(fields[0]) {
			continue // "NAME missing", "NAME ambiguous"
		}
		size, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: answer %q", errReaderDied, clip(line))
		}
		answers[i] = object{id: fields[0], kind: fields[1], size: size}
		if contents == 0 {
			continue
		}
		if size > maxObjectBytes {
			return nil, fmt.Errorf("%s %s of %d bytes: %w", fields[1], fields[0], size, ErrTooLarge)
		}
		if left -= size; left < 0 {
			return nil, errTooMuch
		}
		body := make([]byte, size+1) // git ends each with a newline
		if _, err := io.ReadFull(p.out, body); err != nil {
			return nil, fmt.Errorf("%w: %w", errReaderDied, err)
		}
		answers[i].body = body[:size]
	}
	return answers, nil
}

const (
	maxReaders  = 4
	readerBatch = 512 // names put to a process at once
)

// readerPool hands out readers, starts them when there are none, and replaces those that
// died.
type readerPool struct {
	repo  *Repo
	slots chan struct{}
	ctx   context.Context // ends with the pool
	stop  context.CancelFunc

	mu     sync.Mutex
	idle   []*reader
	closed bool
}

func newReaderPool(r *Repo) *readerPool {
	pool := &readerPool{repo: r, slots: make(chan struct{}, maxReaders)}
	pool.ctx, pool.stop = context.WithCancel(context.Background())
	return pool
}

func (p *readerPool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	p.stop()
	for _, one := range idle {
		one.stop()
	}
}

// objects answers for names, which must hold neither control characters nor come
// unchecked from outside. On a dead process it asks a new one, once. contents is how many bytes the contents of all may have together,
// since a small pack can denote any number of large objects; 0 is without contents.
func (p *readerPool) objects(ctx context.Context, names []string, contents int) ([]object, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	answers, left := make([]object, 0, len(names)), contents
	for len(names) > 0 {
		batch := names[:min(len(names), readerBatch)]
		names = names[len(batch):]
		if contents > 0 && left <= 0 {
			return nil, errTooMuch
		}
		got, err := p.askOnce(ctx, batch, left, false)
		if errors.Is(err, errReaderDied) && ctx.Err() == nil && p.ctx.Err() == nil {
			p.repo.log.Warn("git cat-file died and is started again", "error", err)
			got, err = p.askOnce(ctx, batch, left, true)
		}
		if err != nil {
			return nil, err
		}
		for i := range got {
			left -= len(got[i].body)
		}
		answers = append(answers, got...)
	}
	return answers, nil
}

func (p *readerPool) askOnce(ctx context.Context, names []string, contents int, fresh bool) ([]object, error) {
	one, err := p.take(fresh)
	if err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, one.stop)
	answers, err := one.ask(names, contents)
	if !release() || err != nil { // stopped, or out of step with its stream
		one.stop()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, errReaderDied) && one.memory > 0 && outOfMemory(one.stderr.String(), one.memory) {
			err = fmt.Errorf("git takes more than %d MiB of memory to read an object: %w", one.memory>>20, ErrTooLarge)
		}
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !time.Now().Before(one.old) {
		go one.stop()
	} else {
		p.idle = append(p.idle, one)
	}
	return answers, nil
}

// take returns an idle reader, or a new one; a fresh one is asked for when an idle one has
// just proven dead, since the others may be as well.
func (p *readerPool) take(fresh bool) (*reader, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the mirror is closed")
	}
	if n := len(p.idle); n > 0 && !fresh {
		one := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return one, nil
	}
	p.mu.Unlock()
	return p.repo.startReader(p.ctx)
}

// retire ends a reader that is idle; one that is not ends when it is given back.
func (p *readerPool) retire(one *reader) {
	p.mu.Lock()
	at := slices.Index(p.idle, one)
	if at >= 0 {
		p.idle = slices.Delete(p.idle, at, at+1)
	}
	p.mu.Unlock()
	if at >= 0 {
		one.stop()
	}
}

// renew ends the idle readers, which may hold packs open that are gone.
func (p *readerPool) renew() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, one := range idle {
		one.stop()
	}
}

// Blob returns the bytes of a blob; ErrTooLarge if there are more than maxBytes.
func (r *Repo) Blob(ctx context.Context, id string, maxBytes int64) ([]byte, error) {
	if err := checkID("blob", id); err != nil {
		return nil, err
	}
	infos, err := r.readers.objects(ctx, []string{id}, 0)
	if err != nil {
		return nil, err
	}
	switch info := infos[0]; {
	case info.kind != "blob":
		return nil, fmt.Errorf("%w: %s is not a blob of the mirror (%q)", ErrInvalid, id, info.kind)
	case info.size > maxBytes || info.size > maxObjectBytes:
		return nil, fmt.Errorf("blob %s of %d bytes: %w (%d bytes)", id, info.size, ErrTooLarge, min(maxBytes, maxObjectBytes))
	}
	whole, err := r.readers.objects(ctx, []string{id}, maxObjectBytes)
	if err != nil {
		return nil, err
	}
	return whole[0].body, nil
}
