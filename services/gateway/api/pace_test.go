package api_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
	"landfall.build/services/gateway/view"
)

func TestThePaceCountsTheLandingsOfADay(t *testing.T) {
	backend := apitest.New("main")
	now := apitest.Start
	handler, err := api.NewHandler(api.Options{Backend: backend, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(handler)
	defer plain.Close()
	s := &server{t: t, Backend: backend, Server: plain}
	pace := func() *view.Pace {
		var o view.Overview
		if _, text := s.do("GET", "/v1/queues/main", ""); json.Unmarshal([]byte(text), &o) != nil {
			t.Fatal(text)
		}
		return o.Pace
	}
	if p := pace(); p == nil || len(p.Landed) != 0 || p.WaitP95 != 0 || p.Waits != 0 || !p.LastLandedAt.IsZero() || p.LastLanded != nil {
		t.Errorf("a queue in which nothing landed has the pace %+v", p)
	}
	for _, id := range []string{"a", "b", "c"} {
		s.land(id)
	}
	for _, id := range []string{"a", "b"} {
		s.LandIt("main", id, "build", nil)
	}
	now = apitest.Start.Add(5 * time.Minute)
	p := pace()
	if n := len(p.Landed); n != 144 || p.Landed[n-1] != 2 {
		t.Errorf("of the ten minutes that are under way the pace is %v", p.Landed)
	}
	// Admitted at seconds 0 and 1, landed at 4 and 6, each two records after it was intended.
	if p.WaitP50 <= 0 || p.WaitP95 < p.WaitP50 || p.WaitP95 > 10 || p.LastLandedAt.Sub(apitest.Start) > 10*time.Second {
		t.Errorf("the waits are %+v", p)
	}
	if p.Waits != 2 || p.LastLanded == nil || *p.LastLanded != (view.Landed{Change: "b", Title: "Change b"}) {
		t.Errorf("%d landed, and %+v did last", p.Waits, p.LastLanded)
	}
	now = apitest.Start.Add(6 * time.Hour)
	if p = pace(); len(p.Landed) != 144-36 || p.Landed[len(p.Landed)-1] != 2 || p.WaitP95 != 0 {
		t.Errorf("six hours later the pace is %+v", p)
	}
	now = apitest.Start.Add(48 * time.Hour)
	if p = pace(); len(p.Landed) != 0 || p.LastLandedAt.IsZero() {
		t.Errorf("two days later the pace is %+v", p)
	}
}
