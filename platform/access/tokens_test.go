package access_test

import (
	"reflect"
	"testing"
	"time"

	"landfall.build/platform/access"
)

func TestATokenIsShownAsItWas(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	token := access.Token{ID: "aaaaaaaa", Created: day(10), LastUse: day(20), Revoked: day(30)}
	for n, want := range map[int]access.Token{
		10: {ID: "aaaaaaaa", Created: day(10)},
		20: {ID: "aaaaaaaa", Created: day(10), LastUse: day(20)},
		30: token,
	} {
		if then, made := token.At(day(n)); !made || !reflect.DeepEqual(then, want) {
			t.Errorf("on day %d: %+v %t", n, then, made)
		}
	}
	if _, made := token.At(day(9)); made {
		t.Error("it was there before it was made")
	}
}
