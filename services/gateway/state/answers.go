package state

import (
	"crypto/sha256"

	"landfall.build/engine/admission"
)

// keptAnswers is how many answers are kept whole, for clients that ask again.
const keptAnswers = 10_000

// Given is an answer to a request.
type Given struct {
	admission.Answer
	// Delivery is the delivery that the answer refuses for the moment; empty if it answers the request for good.
	Delivery string
}

// fingerprint stands for a request id or a delivery.
type fingerprint [16]byte

func fingerprintOf(id string) (f fingerprint) {
	sum := sha256.Sum256([]byte(id))
	copy(f[:], sum[:])
	return f
}

// Answers remembers which requests were answered: all of them by a fingerprint, since a request that is read again must
// never be decided twice; the newest with the answer.
type Answers struct {
	// answered are the requests that were answered for good, refused the deliveries that were refused for the moment.
	answered, refused map[fingerprint]struct{}
	kept              map[string]Given
	// order has the requests whose answer is kept, oldest first.
	order []string
}

func newAnswers() Answers {
	return Answers{answered: map[fingerprint]struct{}{}, refused: map[fingerprint]struct{}{}, kept: map[string]Given{}}
}

// Has reports whether a request was answered for good.
func (a *Answers) Has(request string) bool {
	_, has := a.answered[fingerprintOf(request)]
	return has
}

// HasRefused reports whether a delivery of a request was refused for the moment.
func (a *Answers) HasRefused(delivery string) bool {
	_, has := a.refused[fingerprintOf(delivery)]
	return has
}

// Get returns the newest answer to a request, if it is still kept.
func (a *Answers) Get(request string) (Given, bool) {
	answer, kept := a.kept[request]
	return answer, kept
}

// put keeps an answer, and reports whether the request had none for good before.
func (a *Answers) put(request string, answer Given) bool {
	if a.Has(request) {
		return false
	}
	if answer.Delivery == "" {
		a.answered[fingerprintOf(request)] = struct{}{}
	} else {
		a.refused[fingerprintOf(answer.Delivery)] = struct{}{}
	}
	if _, known := a.kept[request]; !known {
		a.order = append(a.order, request)
	}
	a.kept[request] = answer
	if len(a.order) > keptAnswers {
		delete(a.kept, a.order[0])
		a.order = a.order[1:]
	}
	return true
}
