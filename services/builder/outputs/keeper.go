package outputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"landfall.build/platform/retention"
)

// Remote keeps outputs for several machines. What it returns is checked: it need not be right.
type Remote interface {
	// Entry returns what is kept under an id; ErrMissing if nothing is.
	Entry(ctx context.Context, id string) ([]byte, error)
	// PutEntry keeps content under an id, in the place of any other. The files are there.
	PutEntry(ctx context.Context, id string, content []byte, files []Digest) error
	// File opens a file; ErrMissing if it is not kept.
	File(ctx context.Context, d Digest) (io.ReadCloser, error)
	// PutFile keeps a file, unless it has it. With replace it does not ask whether it has it.
	PutFile(ctx context.Context, d Digest, content io.ReadSeeker, replace bool) error
}

const (
	// mostAtOnce is how many files are put into a remote, or fetched, at a time.
	mostAtOnce = 16
	// mostUnsound bounds how many entries are remembered that the remote did not return.
	mostUnsound = 10_000
)

// Keeper keeps outputs in a folder of this machine, and in a remote if there is one. It may be used from several goroutines.
type Keeper struct {
	Folder *Folder
	// Limits are the folder's.
	Limits Limits
	// Remote may be nil. Patience is how long it may take for one target, and Rest how long it is left alone after it has failed, so that a
	// remote that is down costs one step its patience and not every one. Seal makes what it keeps unforgeable.
	Remote         Remote
	Patience, Rest time.Duration
	Seal           *Seal
	Logger         *slog.Logger
	// Trimmed, if set, is called with what was deleted and how many bytes are left.
	Trimmed func(deleted []retention.Victim, left int64, err error)

	// trimming is held by the one who trims.
	trimming sync.Mutex

	mu      sync.Mutex
	resting time.Time
	// unsound holds the ids of entries that the remote did not return whole. Their files are sent again without asking whether it has
	// them: it may say so of a file that it does not return.
	unsound map[string]bool
}

// Keep keeps the outputs of a target version that are in a workspace, in which nothing runs any more. The error is a *Fault if they
// may not be kept; any other one is this machine's.
func (k *Keeper) Keep(ctx context.Context, id, workspace string, outputs []string, b Bounds) (Entry, error) {
	e, err := k.Folder.Keep(ctx, id, workspace, outputs, b)
	if err != nil {
		return e, err
	}
	k.ask(ctx, "outputs were not kept where other machines find them", func(ctx context.Context) error { return k.upload(ctx, id, e) })
	k.trimIfGrown(ctx)
	return e, nil
}

// Trim deletes what goes beyond the folder's limits. It does nothing while another call does that.
func (k *Keeper) Trim(ctx context.Context) {
	if !k.trimming.TryLock() {
		return
	}
	defer k.trimming.Unlock()
	deleted, left, err := k.Folder.Trim(ctx, k.Limits, time.Now())
	if k.Trimmed != nil && ctx.Err() == nil {
		k.Trimmed(deleted, left, err)
	}
}

// trimIfGrown trims the folder if it has grown by much.
func (k *Keeper) trimIfGrown(ctx context.Context) {
	if k.Folder.full(k.Limits) {
		k.Trim(ctx)
	}
}

// Find returns the entry of a target version, and fetches the files of it that the folder lacks. The error is ErrMissing if the
// outputs are not kept anywhere. Files may be gone again, or damaged, once they are laid.
func (k *Keeper) Find(ctx context.Context, id string, outputs []string) (Entry, error) {
	e, err := k.Folder.entry(id, outputs)
	if err == nil && len(k.lacking(e)) == 0 {
		return e, nil
	}
	if err != nil && !errors.Is(err, ErrMissing) {
		return Entry{}, err
	}
	found := false
	k.ask(ctx, "outputs could not be fetched", func(ctx context.Context) (err error) {
		e, err = k.download(ctx, id, outputs)
		if found = err == nil; errors.Is(err, ErrMissing) {
			k.distrust(id)
		}
		return err
	})
	if !found {
		return Entry{}, ErrMissing
	}
	return e, nil
}

// lacking returns the files of an entry that the folder does not have.
func (k *Keeper) lacking(e Entry) (list []Digest) {
	for _, d := range e.digests() {
		if !k.Folder.has(d) {
			list = append(list, d)
		}
	}
	return list
}

// ask calls do with k.Patience, if there is a remote that is not left alone. A failure is logged, and the remote left alone for
// k.Rest.
func (k *Keeper) ask(ctx context.Context, message string, do func(context.Context) error) {
	if k.Remote == nil || !k.awake(time.Now()) {
		return
	}
	asking, cancel := context.WithTimeout(ctx, k.Patience)
	defer cancel()
	err := do(asking)
	if err == nil || errors.Is(err, ErrMissing) || ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	k.resting = time.Now().Add(k.Rest)
	k.mu.Unlock()
	k.Logger.Warn("the store of outputs is left alone for a while", "what", message, "for", k.Rest, "error", err)
}

func (k *Keeper) awake(now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !now.Before(k.resting)
}

func (k *Keeper) upload(ctx context.Context, id string, e Entry) error {
	k.mu.Lock()
	replace := k.unsound[id]
	delete(k.unsound, id)
	k.mu.Unlock()
	if err := together(ctx, e.digests(), func(ctx context.Context, d Digest) error { return k.uploadFile(ctx, d, replace) }); err != nil {
		return err
	}
	content, err := e.encode()
	if err != nil {
		return err
	}
	return k.Remote.PutEntry(ctx, id, k.Seal.seal(id, content), e.digests())
}

func (k *Keeper) uploadFile(ctx context.Context, d Digest, replace bool) error {
	file, err := os.Open(k.Folder.place(filesPart, d.Hash))
	if err != nil {
		return err
	}
	defer file.Close()
	return k.Remote.PutFile(ctx, d, file, replace)
}

// together calls do for each file, for some at a time, and returns the first error, with which the other calls end.
func together(ctx context.Context, files []Digest, do func(context.Context, Digest) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var calls sync.WaitGroup
	places := make(chan struct{}, mostAtOnce)
	for _, d := range files {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		calls.Go(func() {
			if err := do(ctx, d); err != nil {
				cancel(err)
			}
			<-places
		})
	}
	calls.Wait()
	return context.Cause(ctx)
}

// download fetches an entry and the files that the folder lacks.
func (k *Keeper) download(ctx context.Context, id string, outputs []string) (Entry, error) {
	content, err := k.Remote.Entry(ctx, id)
	if err != nil {
		return Entry{}, err
	}
	content, err = k.Seal.open(id, content)
	if err != nil {
		k.Logger.Warn("an entry of the store of outputs is not as a builder wrote it, and counts as not there", "id", id, "error", err)
		return Entry{}, ErrMissing
	}
	e, err := decode(content, outputs)
	if err != nil {
		return Entry{}, err
	}
	if err := together(ctx, k.lacking(e), k.downloadFile); err != nil {
		return Entry{}, err
	}
	if err := k.Folder.putEntry(id, e); err != nil {
		return Entry{}, fmt.Errorf("the folder of outputs: %w", err)
	}
	k.trimIfGrown(ctx)
	return e, nil
}

func (k *Keeper) downloadFile(ctx context.Context, d Digest) error {
	content, err := k.Remote.File(ctx, d)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = k.Folder.add(content, d.Size, &d)
	return err
}

// distrust notes that the remote did not return an entry whole. The next put sends all files of it, also those that the remote says it has.
func (k *Keeper) distrust(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unsound == nil || len(k.unsound) >= mostUnsound {
		k.unsound = map[string]bool{}
	}
	k.unsound[id] = true
}
