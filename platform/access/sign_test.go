package access_test

import (
	"crypto/ed25519"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
)

// unsigned lists the fields that a signature does not cover. A gateway of the release before would refuse one that covers more.
var unsigned = []protoreflect.Name{"team", "title", "description", "uri", "host", "labels"}

// TestASignatureIsOfWhoAsksAndWhatLands: a signature does not hold once a field that it covers is changed. Each field of a request is
// covered, or listed in unsigned.
func TestASignatureIsOfWhoAsksAndWhatLands(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &eventsv1.LandRequest{
		Queue: "shop", Change: "c", Revision: 2, Entries: []*eventsv1.Entry{{Ref: "a", Commit: "1", Review: &eventsv1.Review{Branch: "refs/heads/a", Shown: "refs/pull/1/head"}}}, Requires: []string{"b"}, Author: "Ada", Team: "shop", Title: "t",
		Description: "d", Uri: "u", Host: eventsv1.HostClass_HOST_CLASS_GITEA, Benefit: 2, Labels: map[string]string{"k": "v", "l": "w"}, RequestId: "r",
		Actor: &eventsv1.Actor{Issuer: "i", Subject: "s", Name: "n", Role: "lander", Client: "c", Token: "t"},
	}
	access.SignRequest("log", "key", private, r)
	if !access.IsSigned("log", public, proto.Clone(r).(*eventsv1.LandRequest)) || access.IsSigned("another", public, r) {
		t.Fatal("a request is signed for another log, or not for its own")
	}
	without := func(name protoreflect.Name, change func(*eventsv1.LandRequest)) {
		t.Helper()
		other := proto.Clone(r).(*eventsv1.LandRequest)
		if change(other); access.IsSigned("log", public, other) != slices.Contains(unsigned, name) {
			t.Errorf("with another %s it is signed: %v", name, !slices.Contains(unsigned, name))
		}
	}
	fields := func(m proto.Message, of func(*eventsv1.LandRequest) proto.Message) {
		for fields, i := m.ProtoReflect().Descriptor().Fields(), 0; i < fields.Len(); i++ {
			f := fields.Get(i)
			if !m.ProtoReflect().Has(f) {
				t.Errorf("the test has no %s", f.FullName())
			}
			without(f.Name(), func(r *eventsv1.LandRequest) { of(r).ProtoReflect().Clear(f) })
		}
	}
	fields(r, func(r *eventsv1.LandRequest) proto.Message { return r })
	fields(r.Actor, func(r *eventsv1.LandRequest) proto.Message { return r.Actor })
	fields(r.Entries[0].Review, func(r *eventsv1.LandRequest) proto.Message { return r.Entries[0].Review })
	fields(r.Entries[0], func(r *eventsv1.LandRequest) proto.Message { return r.Entries[0] })
}
