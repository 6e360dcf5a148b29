package snapshottest

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// Reopened returns what restore makes of a snapshot that went through bytes. It fails the test if restore refuses it.
func Reopened[M proto.Message, S any](t testing.TB, snapshot M, restore func(M) (S, error)) S {
	t.Helper()
	bytes, err := proto.Marshal(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	m := snapshot.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(bytes, m); err != nil {
		t.Fatal(err)
	}
	restored, err := restore(m)
	if err != nil {
		t.Fatal(err)
	}
	return restored
}
