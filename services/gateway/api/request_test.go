package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/services/gateway/api"
	"landfall.build/services/gateway/api/apitest"
)

// remembering answers a request id once, and then as it did before, as the gateway does.
type remembering struct {
	*apitest.Backend
	answers map[string]api.Answer
}

func (b remembering) Land(ctx context.Context, r *eventsv1.LandRequest) (api.Answer, error) {
	if answer, before := b.answers[r.RequestId]; before {
		return answer, nil
	}
	answer, err := b.Backend.Land(ctx, r)
	b.answers[r.RequestId] = answer
	return answer, err
}

// TestARequestIDThatWasUsedForAnotherChangeIsAConflict and no admission of what was not admitted.
func TestARequestIDThatWasUsedForAnotherChangeIsAConflict(t *testing.T) {
	handler, err := api.NewHandler(api.Options{Backend: remembering{apitest.New("main"), map[string]api.Answer{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, ask := range []struct {
		ref, names string
		status     int
	}{{"du1", "du1", http.StatusCreated}, {"du1", "du1", http.StatusCreated}, {"du2", "used for du1", http.StatusConflict}} {
		request := httptest.NewRequest("POST", "/v1/queues/main/changes", strings.NewReader(`{"entries":[{"ref":"`+ask.ref+`"}],"request_id":"review-1"}`))
		request.Header.Set("Content-Type", "application/json")
		request.Host = "127.0.0.1"
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		if w.Code != ask.status || !strings.Contains(w.Body.String(), ask.names) {
			t.Errorf("%s: %d %s", ask.ref, w.Code, w.Body)
		}
	}
}
