package state

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
)

// keptAnswers is how many answers are kept whole, for clients that ask again.
const keptAnswers = 10_000

// Given is an answer to a request.
type Given struct {
	admission.Answer
	// Delivery is the delivery that the answer is for; empty if it answers the request for good.
	Delivery string
}

// fingerprint stands for a request id or a delivery.
type fingerprint [16]byte

func fingerprintOf(id string) (f fingerprint) {
	sum := sha256.Sum256([]byte(id))
	copy(f[:], sum[:])
	return f
}

// digest is what is kept of an answer however old it is.
type digest struct {
	change uint32 // of the change's id; 0 if that is not known
	what   uint32 // kind in the upper 8 bits, the revision in the others
	// place is that of the request that was answered for good, as PlaceOf returns it; 0 if the record does not tell.
	place uint64
}

// Kinds of answers. Those from kindCode on are refusals for good: the index of the code in admission.Codes, which snapshots
// rely on: codes are only added at its end.
const (
	kindUnknown = iota // for good, by a snapshot of an earlier version
	kindPassing        // the request is still to be decided
	kindAdmitted
	kindCode
)

const (
	digestBytes  = 16 // in a snapshot
	revisionBits = 24
)

func (d digest) kind() int { return int(d.what >> revisionBits) }

// revision is 0 where it is too large to be kept.
func (d digest) revision() uint64 { return uint64(d.what & (1<<revisionBits - 1)) }

// PlaceOf returns a number for a place in landfall.land-requests, 0 for none.
func PlaceOf(p *eventsv1.RequestPlace) uint64 {
	if p == nil {
		return 0
	}
	return uint64(p.Partition+1)<<48 | uint64(p.Offset)
}

func changeDigest(change string) uint32 {
	if change == "" {
		return 0
	}
	f := fingerprintOf(change)
	return max(binary.LittleEndian.Uint32(f[:]), 1)
}

func digestOf(g Given) digest {
	d := digest{change: changeDigest(g.Change()), place: PlaceOf(g.Refused.GetPlace())}
	kind, revision := kindUnknown, g.Refused.GetRevision()
	switch {
	case g.Admitted != nil:
		kind, d.place, revision = kindAdmitted, PlaceOf(g.Admitted.Place), g.Admitted.Revision
	case g.Delivery != "":
		kind, d.place = kindPassing, 0
	default:
		if at := slices.Index(admission.Codes(), admission.Code(g.Refused.GetCode())); at >= 0 {
			kind = kindCode + at
		}
	}
	if d.what = uint32(kind) << revisionBits; revision < 1<<revisionBits {
		d.what |= uint32(revision)
	}
	return d
}

func (d digest) bytes() []byte {
	out := binary.LittleEndian.AppendUint32(nil, d.change)
	out = binary.LittleEndian.AppendUint32(out, d.what)
	return binary.LittleEndian.AppendUint64(out, d.place)
}

func digestFrom(b []byte) digest {
	return digest{change: binary.LittleEndian.Uint32(b), what: binary.LittleEndian.Uint32(b[4:]), place: binary.LittleEndian.Uint64(b[8:])}
}

// Answers remembers which requests were answered: all of them by a digest, since a request that is read again must
// never be decided twice, and its id is its change's for ever; the newest with the answer.
type Answers struct {
	answered map[fingerprint]digest
	// refused are the deliveries that have an answer of their own.
	refused map[fingerprint]struct{}
	kept    map[string]Given
	// order has the requests whose answer is kept, oldest first.
	order []string
}

func newAnswers() Answers {
	return Answers{answered: map[fingerprint]digest{}, refused: map[fingerprint]struct{}{}, kept: map[string]Given{}}
}

// Standing is what is still to be done about a delivery of a request.
type Standing int

const (
	// Undecided requests are to be decided.
	Undecided Standing = iota
	// Answered deliveries need nothing.
	Answered
	// Repeated deliveries get the request's answer, or that its id is another change's.
	Repeated
)

// Standing returns that of a delivery of a request for a change, at a place.
func (a *Answers) Standing(request, change, delivery string, place uint64) Standing {
	d, known := a.answered[fingerprintOf(request)]
	_, refused := a.refused[fingerprintOf(delivery)]
	switch {
	case refused, known && d.kind() != kindPassing && (d.place == 0 || d.place == place):
		return Answered
	case known && (d.kind() != kindPassing || d.isAnother(change)):
		return Repeated
	}
	return Undecided
}

// isAnother reports whether the answer was to a request for another change.
func (d digest) isAnother(change string) bool {
	return d.change != 0 && change != "" && d.change != changeDigest(change)
}

// Has reports whether a request was answered for good.
func (a *Answers) Has(request string) bool {
	d, has := a.answered[fingerprintOf(request)]
	return has && d.kind() != kindPassing
}

// HasRefused reports whether a delivery of a request has an answer of its own.
func (a *Answers) HasRefused(delivery string) bool {
	_, has := a.refused[fingerprintOf(delivery)]
	return has
}

// Get returns the newest answer to a request, if it is still kept.
func (a *Answers) Get(request string) (Given, bool) {
	answer, kept := a.kept[request]
	return answer, kept
}

// Earlier returns what is known of the answer to a request that asks for a change now; false if it is to be decided. The answer
// to a request for another change has that one's name, or none.
func (a *Answers) Earlier(request, change string) (admission.Answer, bool) {
	d, known := a.answered[fingerprintOf(request)]
	another := d.isAnother(change)
	if !known || d.kind() == kindPassing && !another {
		return admission.Answer{}, false
	}
	if whole, kept := a.kept[request]; kept {
		return whole.Answer, true
	}
	refused := &eventsv1.RequestRefused{
		RequestId: request, Change: change, Revision: d.revision(), Code: string(admission.Unchanged),
		Message: "This request was answered long ago; look up the change.",
	}
	switch {
	case another:
		refused.Change = ""
	case d.kind() == kindAdmitted:
		return admission.Answer{Admitted: &eventsv1.Admission{Change: change, Revision: d.revision(), RequestId: request}}, true
	case d.kind() >= kindCode && d.kind() < kindCode+len(admission.Codes()):
		refused.Code = string(admission.Codes()[d.kind()-kindCode])
	}
	return admission.Answer{Refused: refused}, true
}

// put keeps an answer, and reports whether somebody may wait for it: a request is answered for good once.
func (a *Answers) put(request string, answer Given) bool {
	if answer.Delivery != "" {
		a.refused[fingerprintOf(answer.Delivery)] = struct{}{}
	}
	if a.Has(request) || answer.Refused.GetCode() == string(admission.RequestIDTaken) {
		return answer.Delivery != ""
	}
	a.answered[fingerprintOf(request)] = digestOf(answer)
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
