package retention

import "sync"

// Account holds how much is kept, and was deleted, in one process. A nil one takes nothing.
type Account struct {
	mu            sync.Mutex
	kept, deleted map[string]int64 // bytes, by kind
}

// Keep sets how many bytes there are of a kind: logs, mirrors, worktrees.
func (a *Account) Keep(kind string, bytes int64) {
	a.change(func() {
		a.kept[kind] = bytes
		a.deleted[kind] += 0
	})
}

// Delete counts bytes of a kind that were deleted.
func (a *Account) Delete(kind string, bytes int64) {
	a.change(func() { a.deleted[kind] += bytes })
}

func (a *Account) change(what func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept, a.deleted = map[string]int64{}, map[string]int64{}
	}
	what()
}
