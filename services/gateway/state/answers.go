package state

import (
	"crypto/sha256"

	"landfall.build/services/gateway/admission"
)

// keptAnswers is how many answers are kept whole, for clients that ask again.
const keptAnswers = 10_000

// Given is an answer to a request.
type Given struct {
	admission.Answer
	// Delivery that it is for, if it is a refusal of the moment.
	Delivery string
}

// Answers remembers which requests were answered: all of them by a fingerprint (16 bytes each), since a
// request that is found in the topic again must never be decided twice; the newest with the answer.
type Answers struct {
	all map[[16]byte]struct{}
	// refused are deliveries that were refused for the moment.
	refused map[[16]byte]struct{}
	kept    map[string]Given
	order   []string
}

func newAnswers() Answers {
	return Answers{all: map[[16]byte]struct{}{}, refused: map[[16]byte]struct{}{}, kept: map[string]Given{}}
}

func fingerprint(request string) (f [16]byte) {
	sum := sha256.Sum256([]byte(request))
	copy(f[:], sum[:])
	return f
}

// Has says that a request was answered for good.
func (a *Answers) Has(request string) bool {
	_, has := a.all[fingerprint(request)]
	return has
}

// HasRefused says that a delivery of a request was refused for the moment.
func (a *Answers) HasRefused(delivery string) bool {
	_, has := a.refused[fingerprint(delivery)]
	return has
}

// Get gives the newest answer to a request, as long as it is kept.
func (a *Answers) Get(request string) (Given, bool) {
	answer, known := a.kept[request]
	return answer, known
}

// put says false if the request was answered before.
func (a *Answers) put(request string, answer Given) bool {
	if a.Has(request) {
		return false
	}
	if answer.Delivery == "" {
		a.all[fingerprint(request)] = struct{}{}
	} else {
		a.refused[fingerprint(answer.Delivery)] = struct{}{}
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
