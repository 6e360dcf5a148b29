// Package api is the gateway's HTTP interface: JSON in snake_case, server-sent events for those who
// watch, plain text for logs. openapi.yaml describes it, and a test holds the two together.
//
// It decides nothing. A land request is published and its answer awaited; a cancellation, a move, a hold,
// a pause or a quarantine is appended as a fact, and the reply says whether it was applied.
package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	"landfall.build/engine/lineup"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/health"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/refusals"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/view"
	"landfall.build/services/gateway/whatif"
)

var (
	// ErrUnknownQueue is returned by a Backend for a queue that is not configured.
	ErrUnknownQueue = errors.New("unknown queue")
	// ErrUnanswered is returned when the wait for an answer ran out. The request or fact is in the log
	// and has its effect; asking again with the same request id does no harm.
	ErrUnanswered = errors.New("not answered in time")
	// ErrUnconfirmed is returned when the log did not confirm an append: the request or fact may be in it, and most often is
	// not. Asking again with the same request id does no harm.
	ErrUnconfirmed = errors.New("the log did not confirm the append")
	// ErrNotReady is returned while the log is still being read.
	ErrNotReady = errors.New("the log is still being read")
)

// Backend is what the API needs of the gateway. Its methods are safe for concurrent use.
type Backend interface {
	// Queues returns the names of the configured queues, sorted.
	Queues() []string
	// Land publishes a land request (ErrUnconfirmed) and waits for its answer until the context ends
	// (ErrUnanswered). It sets the request's id where the caller gave none.
	Land(ctx context.Context, r *eventsv1.LandRequest) (Answer, error)
	// Steer appends a fact about a queue (or, with a subject, about that change) and waits until it is
	// folded. Its errors are those of Land.
	Steer(ctx context.Context, queue, subject string, fact proto.Message) (lineup.Consequence, error)
	// Read calls f with the view of a queue, which f must not keep; false if there is no such queue.
	Read(queue string, f func(*view.Queue)) bool
	// ReadAt calls f with the view of a queue as it was at a time, which f must not keep. Its errors are ErrUnknownQueue and, where the
	// context ended before the log was folded up to there, past.ErrReading: the next call goes on from where it was. Only if whole is
	// set the view may be asked where a step waits, which costs more.
	ReadAt(ctx context.Context, queue string, at time.Time, whole bool, f func(*view.Queue)) error
	// Answer works out a full explanation, for which it reads the log.
	Answer(ctx context.Context, queue string, i *view.Inquiry) error
	// Changed is closed when the next record of the queue was folded.
	Changed(queue string) <-chan struct{}
	// Ready is nil once everything that was in the log at the start is folded.
	Ready() error
	// Healthy is nil while the gateway can work: it is ready, and the broker answers.
	Healthy() error
	// Services returns which services are at work.
	Services() health.Report
	// OwnersAt returns who had claimed the partitions of some queues at a time. Its errors are those of ReadAt.
	OwnersAt(ctx context.Context, queues []string, at time.Time) ([]health.Ownership, error)
}

// Answer to a land request: exactly one of the two is set.
type Answer = admission.Answer

// Options of a handler.
type Options struct {
	Backend Backend
	// LogStore is the directory that builders keep complete logs in; "" if they are elsewhere.
	LogStore string
	// LogID is the id of the log of events, from which names of the logs of steps follow.
	LogID string
	// Hosts are names by which clients may reach the gateway, besides localhost and IP addresses. A
	// request for another name is refused: it may come from a page whose name was bound to this address.
	Hosts []string
	// Proxies are the networks of the proxies that name their clients in X-Forwarded-For.
	Proxies []netip.Prefix
	Log     *slog.Logger
	// SignIn signs people in; nil: there is no issuer.
	SignIn *signin.Service
	// Access says who may do what; the zero value believes the name in each request.
	Access configuration.Access
	// Tokens, if set, are those of programs. Identity finds who is signed in, or has a token of an issuer; nil: SignIn does.
	Tokens   TokenStore
	Identity identity.Source
	// DeadLetters, if set, holds what could not be read or handled.
	DeadLetters DeadLetterStore
	// Models, if set, holds the trained models of queues.
	Models ModelStore
	// Analyst, if set, asks the history.
	Analyst Analyst
	// WhatIf, if set, simulates other settings.
	WhatIf *whatif.Runner
	// Differ, if set, compares revisions.
	Differ Differ
	// Refusals gets who was refused what; nil: Log does.
	Refusals *refusals.Log
	// Lists, if set, counts the changes of dead letters, tokens and models for those who watch.
	Lists *Lists
	// Clock is the time until which waits count; nil is time.Now.
	Clock func() time.Time
}

type handler struct {
	Options
	logs    *os.Root
	boot    string
	hosts   map[string]bool
	streams *streams
	// logsSent are the finished logs that are being sent.
	logsSent *streams
	watched  *watched
	rules    *access.Rules
	// callers bounds how often a caller asks, and strangers how often an address does without proof.
	callers, strangers *throttle
	// callbacks bounds how often an address comes back from a provider in vain.
	callbacks *throttle
	// turns bounds how many requests of a caller are worked on at a time.
	turns *turns
	// refused bounds how many lines a caller has in the log of refusals.
	refused *throttle
	// looks bounds how often a caller asks for the past.
	looks *looks
	// timelines limits how many timelines are made at a time.
	timelines chan struct{}
	mux       *http.ServeMux
}

// route is one row of the API; openapi.yaml has the same rows.
type route struct {
	method, path string
	serve        http.HandlerFunc
}

func (h *handler) routes() []route {
	return []route{
		{"GET", "/healthz", h.serveHealth},
		{"GET", "/livez", h.serveHealth},
		{"GET", "/readyz", h.serveReady},
		{"GET", "/v1/openapi.yaml", h.serveDocument},
		{"GET", "/v1/signin", h.serveSignInWays},
		{"GET", "/v1/signin/{issuer}/start", h.serveSignInStart},
		{"GET", "/v1/signin/{issuer}/callback", h.serveSignInCallback},
		{"POST", "/v1/signout", h.serveSignOut},
		{"GET", "/v1/whoami", h.serveWhoAmI},
		{"GET", "/v1/tokens", h.serveTokens},
		{"POST", "/v1/tokens", h.serveTokenCreate},
		{"POST", "/v1/tokens/{token}/revoke", h.serveTokenRevoke},
		{"GET", "/v1/dead-letters", h.serveDeadLetters},
		{"POST", "/v1/dead-letters/{topic}/{partition}/{offset}/send", h.serveDeadLetterSend},
		{"GET", "/v1/services", h.serveServices},
		{"GET", "/v1/pools/{pool}/timeline", h.serveTimeline},
		{"GET", "/v1/queues", h.serveQueues},
		{"GET", "/v1/watch", h.serveWatch},
		{"GET", "/v1/queues/{queue}", h.serveQueue},
		{"GET", "/v1/queues/{queue}/events", h.serveEvents},
		{"GET", "/v1/queues/{queue}/access", h.serveAccess},
		{"GET", "/v1/queues/{queue}/graph", h.serveGraph},
		{"GET", "/v1/queues/{queue}/logs", h.serveLogs},
		{"POST", "/v1/queues/{queue}/pause", h.servePause},
		{"POST", "/v1/queues/{queue}/resume", h.serveResume},
		{"GET", "/v1/queues/{queue}/models", h.serveModels},
		{"POST", "/v1/queues/{queue}/models/promote", h.serveModelPromote},
		{"POST", "/v1/queues/{queue}/models/rollback", h.serveModelRollback},
		{"GET", "/v1/queues/{queue}/analytics", h.serveAnalytics},
		{"GET", "/v1/queues/{queue}/what-if", h.serveWhatIf},
		{"POST", "/v1/queues/{queue}/what-if", h.serveWhatIfStart},
		{"POST", "/v1/queues/{queue}/what-if/cancel", h.serveWhatIfCancel},
		{"GET", "/v1/queues/{queue}/flakes", h.serveFlakes},
		{"GET", "/v1/queues/{queue}/quarantines", h.serveQuarantines},
		{"POST", "/v1/queues/{queue}/quarantines", h.serveQuarantine},
		{"POST", "/v1/queues/{queue}/quarantines/end", h.serveQuarantineEnd},
		{"GET", "/v1/queues/{queue}/changes", h.serveChanges},
		{"POST", "/v1/queues/{queue}/changes", h.serveLand},
		{"GET", "/v1/queues/{queue}/changes/{change}", h.serveChange},
		{"DELETE", "/v1/queues/{queue}/changes/{change}", h.serveDelete},
		{"GET", "/v1/queues/{queue}/changes/{change}/explain", h.serveExplain},
		{"GET", "/v1/queues/{queue}/changes/{change}/difference", h.serveDifference},
		{"GET", "/v1/queues/{queue}/changes/{change}/logs", h.serveLogs},
		{"POST", "/v1/queues/{queue}/changes/{change}/cancel", h.serveCancel},
		{"POST", "/v1/queues/{queue}/changes/{change}/retry", h.serveRetry},
		{"POST", "/v1/queues/{queue}/retry", h.serveRetryMainline},
		{"POST", "/v1/queues/{queue}/changes/{change}/priority", h.servePriority},
		{"POST", "/v1/queues/{queue}/changes/{change}/hold", h.serveHold},
		{"POST", "/v1/queues/{queue}/changes/{change}/release", h.serveRelease},
	}
}
