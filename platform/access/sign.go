package access

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"slices"

	eventsv1 "landfall.build/events/v1"
)

// SignRequest signs who asks for a land request, so that every gateway believes it. name is that of the key in landfall.access.
func SignRequest(log, name string, private ed25519.PrivateKey, r *eventsv1.LandRequest) {
	r.SignedBy = name
	r.Signature = ed25519.Sign(private, signedText(log, r))
}

// IsSigned reports whether a land request was signed by the holder of a key.
func IsSigned(log string, public ed25519.PublicKey, r *eventsv1.LandRequest) bool {
	return ed25519.Verify(public, signedText(log, r), r.Signature)
}

// RequestText returns what a publisher signs of a record of landfall.land-requests: its content type as the record has it, "" for none,
// and its value, so that the value is not read as another type. A content type with a line break counts for no signature.
func RequestText(contentType string, value []byte) []byte {
	return slices.Concat([]byte("landfall land request\n"), []byte(contentType), []byte("\n"), value)
}

// signedText returns what a signature is of: who asks for what. It names the log and the request, so that it is good for no other one.
// What people read of the change (title, description, uri, team, host, labels) is not in it.
func signedText(log string, r *eventsv1.LandRequest) []byte {
	h := sha512.New()
	field := func(texts ...string) {
		for _, text := range texts {
			writeLength(h, len(text))
			h.Write([]byte(text))
		}
	}
	version := "landfall land request 1"
	reviewed := slices.ContainsFunc(r.Entries, func(e *eventsv1.Entry) bool { return e.GetReview() != nil })
	if reviewed {
		version = "landfall land request 2"
	}
	field(version, log, r.SignedBy, r.RequestId, r.Queue, r.Change, r.Author, fmt.Sprint(r.Revision), fmt.Sprint(math.Float64bits(r.Benefit)))
	writeLength(h, len(r.Entries))
	for _, e := range r.Entries {
		field(e.GetRef(), e.GetCommit())
		if reviewed {
			field(e.GetReview().GetBranch(), e.GetReview().GetShown())
		}
	}
	writeLength(h, len(r.Requires))
	field(r.Requires...)
	a := r.Actor
	field(a.GetIssuer(), a.GetSubject(), a.GetName(), a.GetRole(), a.GetClient(), a.GetToken())
	return h.Sum(nil)
}

func writeLength(h hash.Hash, n int) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
