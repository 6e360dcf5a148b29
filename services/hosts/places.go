package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	placesTimeout = 10 * time.Second
	maxPlaces     = 64 << 20
)

// Gateway asks a gateway for the places of changes.
type Gateway struct {
	// URL returns its address, "" if that is not known.
	URL func() string
	// Token reads the token that it is given; nil for none.
	Token  func(ctx context.Context) ([]byte, error)
	Client *http.Client
}

// Page returns the address of a change's page, "" if the gateway's is not known.
func (g *Gateway) Page(queue, change string) string {
	base := g.URL()
	if base == "" {
		return ""
	}
	return strings.TrimSuffix(base, "/") + "/queues/" + url.PathEscape(queue) + "/changes/" + url.PathEscape(change)
}

// Places returns the places of a queue's changes, of those in the queue and of those that left it last.
func (g *Gateway) Places(ctx context.Context, queue string) (map[string]Place, error) {
	base := g.URL()
	if base == "" {
		return nil, fmt.Errorf("the gateway's address is not known (hosts.gateway)")
	}
	ctx, cancel := context.WithTimeout(ctx, placesTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/v1/queues/"+url.PathEscape(queue)+"/changes?limit=1000", nil)
	if err != nil {
		return nil, err
	}
	if g.Token != nil {
		token, err := g.Token(ctx)
		if err != nil {
			return nil, fmt.Errorf("the gateway's token cannot be read: %w", err)
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	answer, err := g.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the gateway answers %d", answer.StatusCode)
	}
	var list struct {
		Changes []struct {
			Change   string `json:"change"`
			State    string `json:"state"`
			Position int    `json:"position"`
			Why      string `json:"why"`
			ETA      struct {
				Median time.Time `json:"median"`
			} `json:"eta"`
			Failure struct {
				Sentence string   `json:"sentence"`
				Lines    []string `json:"lines"`
			} `json:"failure"`
		} `json:"changes"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxPlaces)).Decode(&list); err != nil {
		return nil, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	places := make(map[string]Place, len(list.Changes))
	for _, c := range list.Changes {
		if _, known := places[c.Change]; !known {
			places[c.Change] = Place{State: c.State, Position: c.Position, Why: c.Why, ETA: c.ETA.Median, Failure: c.Failure.Sentence, Lines: c.Failure.Lines}
		}
	}
	return places, nil
}
