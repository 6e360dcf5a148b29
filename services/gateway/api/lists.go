package api

import (
	"slices"
	"sync"

	"landfall.build/platform/access"
)

// Lists counts the changes of the lists that no view of a queue has: dead letters, services, tokens, and the models of each queue. Clients
// watch the counts and read a list again when its count has grown. The zero value is ready; its methods are safe for concurrent use.
type Lists struct {
	mu     sync.Mutex
	counts map[partKey]uint64
	// advanced is closed, and replaced, when a count grows.
	advanced chan struct{}
}

// Changed counts a change of a list that is folded: PartDeadLetters, PartServices or PartTokens, without a queue, or PartModels or PartWhatIf with one.
func (l *Lists) Changed(kind, queue string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counts == nil {
		l.counts = map[partKey]uint64{}
	}
	l.counts[partKey{kind, queue, ""}]++
	if l.advanced != nil {
		close(l.advanced)
		l.advanced = nil
	}
}

// count returns how often a list has changed since the gateway started.
func (l *Lists) count(k partKey) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[k]
}

// next is closed when any list changes from now on.
func (l *Lists) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.advanced == nil {
		l.advanced = make(chan struct{})
	}
	return l.advanced
}

// isList reports whether the part is the count of a list.
func (k partKey) isList() bool {
	return k.kind == PartDeadLetters || k.kind == PartServices || k.kind == PartTokens || k.kind == PartModels || k.kind == PartWhatIf
}

// mayList reports whether somebody may read a list that is of no queue.
func (h *handler) mayList(a asker, kind string) bool {
	verb := access.Read
	if kind == PartTokens {
		verb = access.ManageTokens
	}
	return slices.ContainsFunc(h.Backend.Queues(), func(queue string) bool {
		return h.rules.Decide(a.Caller, verb, queue, access.Owner{}).Allowed
	})
}
