package gitea

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// TestTenThousandOpenPullRequestsAreListedInTwoHundredRequests, and those that changed since in one.
func TestTenThousandOpenPullRequestsAreListedInTwoHundredRequests(t *testing.T) {
	const open = 9_999
	start, requests := time.Unix(1_000_000, 0), 0
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		requests++
		page, _ := strconv.Atoi(in.FormValue("page"))
		list := []pull{}
		for i := (page - 1) * pageSize; i < min(page*pageSize, open); i++ {
			p := pull{Number: int64(open - i), State: "open", Update: start.Add(time.Duration(open-i) * time.Second)}
			p.Base.Ref = "main"
			list = append(list, p)
		}
		_ = json.NewEncoder(out).Encode(list)
	}))
	defer server.Close()
	r := New(Options{URL: server.URL, Repository: "acme/shop", Branch: "main", Token: func(context.Context) ([]byte, error) { return []byte("t"), nil }})
	began := time.Now()
	all, err := r.List(t.Context(), 0)
	if err != nil || len(all) != open || requests != 200 {
		t.Errorf("%d are listed in %d requests: %v", len(all), requests, err)
	}
	t.Logf("listed in %v", time.Since(began))
	requests = 0
	changed, err := r.List(t.Context(), start.Add((open-2)*time.Second).UnixMicro())
	if err != nil || len(changed) != 3 || requests != 1 {
		t.Errorf("%d changed, in %d requests: %v", len(changed), requests, err)
	}
}
