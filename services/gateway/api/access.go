package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"landfall.build/engine/admission"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/refusals"
	"landfall.build/services/gateway/view"
)

// TokenStore holds the tokens of the log. Its methods are safe for concurrent use.
type TokenStore interface {
	// CheckToken returns the token that was presented; the errors are those of access.Tokens.Check.
	CheckToken(presented string) (access.Token, error)
	// Tokens returns all tokens, oldest first; Token that of an id.
	Tokens() []access.Token
	Token(id string) (t access.Token, known bool)
	// Grant appends a fact about tokens (ErrUnconfirmed) and returns once it is folded.
	Grant(ctx context.Context, fact proto.Message) error
}

// asker is who sends a request, and the role by which it was let in.
type asker struct {
	access.Caller
	role access.Role
}

// keyOf tells callers from one another.
func keyOf(c access.Caller) string { return c.Issuer + " " + c.Subject }

// callerKeyOf returns the key of who sends a request, "" where names are believed: then it proves nothing.
func callerKeyOf(r *http.Request) string {
	a := askerOf(r)
	if a.Issuer == access.IssuerOpen {
		return ""
	}
	return keyOf(a.Caller)
}

func (a asker) actor() *eventsv1.Actor { return a.Actor(a.role) }

type askerKey struct{}

// askerOf returns who sends a request. Every route has one: the guard comes before.
func askerOf(r *http.Request) asker {
	a, _ := r.Context().Value(askerKey{}).(asker)
	return a
}

// streamTime is how long a stream of somebody who has proven who it is lasts, so that none is for ever.
const streamTime = 10 * time.Minute

// guard lets a request through to a route, or refuses it: by its row in the table of doors, who asks, and what the rules say.
func (h *handler) guard(d access.Door, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if d.For == access.Everybody {
			serve(w, r)
			return
		}
		caller, err := h.knownCaller(r)
		if err != nil {
			h.refuseUnknown(w, r, err)
			return
		}
		if caller.Issuer != access.IssuerOpen && !h.callers.allow(keyOf(caller)) {
			h.writeFailure(w, r, tooMany(fmt.Sprintf("You ask more often than %d times a second (access.rate).", h.Access.Rate)))
			return
		}
		ctx := r.Context()
		if caller.Issuer != access.IssuerOpen {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, streamTime)
			defer stop()
			waiting, enough := context.WithTimeout(ctx, turnPatience)
			defer enough()
			end, err := h.turns.begin(waiting, keyOf(caller))
			if err != nil {
				h.writeFailure(w, r, tooMany(fmt.Sprintf("%d of your requests are worked on, the most of one caller at a time.", turnsOfOne)))
				return
			}
			defer end()
			http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
			ctx = context.WithValue(ctx, turnKey{}, end)
		}
		decision := h.enter(d, r, caller)
		if !decision.Allowed {
			h.refuse(w, r, caller, decision)
			return
		}
		still := func() error {
			now, err := h.knownCaller(r)
			if err != nil {
				return err
			}
			if decision := h.enter(d, r, now); !decision.Allowed {
				return failureOf(decision)
			}
			return nil
		}
		ctx = context.WithValue(ctx, stillKey{}, still)
		serve(w, r.WithContext(context.WithValue(ctx, askerKey{}, asker{caller, decision.Role})))
	}
}

// knownCaller returns who asks, and an error if that is not proven.
func (h *handler) knownCaller(r *http.Request) (access.Caller, error) {
	caller, err := h.callerOf(r)
	if err == nil && caller.Anonymous() {
		err = fail(http.StatusUnauthorized, string(access.Unauthenticated), "It is not known who asks.", "Sign in (landfall login), or give a token (LANDFALL_TOKEN, or Authorization: Bearer).")
	}
	return caller, err
}

type stillKey struct{}

// stillAllowed authorises a request again. Its token may have been revoked while the body was read, or a stream was open.
func stillAllowed(r *http.Request) error {
	if still, is := r.Context().Value(stillKey{}).(func() error); is {
		return still()
	}
	return nil
}

// enter decides about a door. Of a change that the path names it is known whose it is; of one in the body the handler asks again.
func (h *handler) enter(d access.Door, r *http.Request, c access.Caller) access.Decision {
	switch d.For {
	case access.Known:
		return access.Decision{Allowed: true}
	case access.Somewhere:
		for _, queue := range h.Backend.Queues() {
			if decision := h.rules.Decide(c, d.Verb, queue, access.Owner{}); decision.Allowed {
				return decision
			}
		}
		return h.rules.Decide(c, d.Verb, access.NoQueue, access.Owner{})
	}
	queue := r.PathValue("queue")
	// Whose a change is matters to who may do it to its own ones alone. Of others nothing of the queue is looked at: that takes time, and would
	// tell whether there is such a queue.
	decision := h.rules.Decide(c, d.Verb, queue, access.Owner{})
	if decision.Allowed || !h.rules.Decide(c, d.Verb, queue, access.Owner{New: true}).Allowed {
		return decision
	}
	return h.rules.Decide(c, d.Verb, queue, h.ownerOf(queue, r.PathValue("change")))
}

// ownerOf returns whose a change is.
func (h *handler) ownerOf(queue, change string) access.Owner {
	if change == "" {
		return access.Owner{New: true}
	}
	owner := access.Owner{New: true}
	h.Backend.Read(queue, func(q *view.Queue) {
		if a := q.Admission(change); a != nil {
			owner = OwnerOf(a)
		} else if q.Lineup().Known(change) > 0 {
			owner = access.Owner{}
		}
	})
	return owner
}

// OwnerOf returns whose an admitted change is.
func OwnerOf(a *eventsv1.Admission) access.Owner {
	return access.Owner{Issuer: a.Actor.GetIssuer(), Subject: a.Actor.GetSubject(), Author: a.Author}
}

// allowed returns nil if who sends a request may do something to the queue that its path names.
func (h *handler) allowed(r *http.Request, v access.Verb, of access.Owner) error {
	a := askerOf(r)
	if d := h.rules.Decide(a.Caller, v, r.PathValue("queue"), of); !d.Allowed {
		return failureOf(d)
	}
	return nil
}

// mayRead reports whether who sends a request may read a queue.
func (h *handler) mayRead(r *http.Request, queue string) bool {
	return h.rules.Decide(askerOf(r).Caller, access.Read, queue, access.Owner{}).Allowed
}

// readable returns the queues that who sends a request may read.
func (h *handler) readable(r *http.Request) []string {
	return slices.DeleteFunc(slices.Clone(h.Backend.Queues()), func(queue string) bool { return !h.mayRead(r, queue) })
}

// callerOf returns who sends a request: by a token, by an identity that an issuer vouches for, or, where names are believed, by its
// name. Nothing but these headers counts: neither the URL nor the body.
func (h *handler) callerOf(r *http.Request) (access.Caller, error) {
	credentials := r.Header.Values("Authorization")
	var caller access.Caller
	switch {
	case len(credentials) > 1:
		return caller, unauthenticated("There is more than one Authorization header.")
	case len(credentials) == 1:
		scheme, token, _ := strings.Cut(credentials[0], " ")
		token = strings.TrimLeft(token, " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return caller, unauthenticated("The Authorization header is not Bearer and a token.")
		}
		if access.IsToken(token) {
			if h.Tokens == nil {
				return caller, unauthenticated("There are no tokens here.")
			}
			t, err := h.Tokens.CheckToken(token)
			if err != nil {
				return caller, unauthenticated(sentence(err.Error()))
			}
			caller = t.Caller()
			break
		}
	}
	if caller.Anonymous() {
		i, err := h.Identity.Of(r)
		switch {
		case errors.Is(err, identity.ErrUnreachable):
			return caller, fail(http.StatusServiceUnavailable, codeProviderAway, access.Clean(sentence(err.Error()), 500), "Ask again; who is signed in already goes on.")
		case err != nil:
			return caller, unauthenticated(access.Clean(sentence(err.Error()), 500))
		case i != nil:
			caller = access.FromIdentity(*i)
		}
	}
	if caller.Anonymous() && h.rules.Open() {
		name := r.Header.Get(UserHeader)
		if !printable(name, maxWhoBytes) {
			return caller, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("%s is not printable text of at most %d bytes.", UserHeader, maxWhoBytes), "Shorten it.")
		}
		caller = access.Open(name)
	}
	caller.Client = r.UserAgent()
	return caller, nil
}

func unauthenticated(message string) *failure {
	return fail(http.StatusUnauthorized, string(access.Unauthenticated), message, "Give another token (LANDFALL_TOKEN), or sign in again.")
}

func tooMany(message string) *failure {
	return fail(http.StatusTooManyRequests, codeTooMany, message, "Ask more slowly.")
}

func failureOf(d access.Decision) *failure {
	status := http.StatusForbidden
	if d.Code == access.Unauthenticated {
		status = http.StatusUnauthorized
	}
	return fail(status, string(d.Code), d.Reason, d.Advice)
}

// refuseUnknown answers a request of somebody who has not proven who it is. An address that goes on is told to slow down, and leaves no
// more lines in the log of refusals.
func (h *handler) refuseUnknown(w http.ResponseWriter, r *http.Request, err error) {
	if !h.strangers.allow(h.addressOf(r)) {
		err = tooMany("There were too many requests without proof of who asks from this address.")
		h.Refusals.LeaveOut()
	}
	h.writeFailure(w, r, err)
}

func (h *handler) refuse(w http.ResponseWriter, r *http.Request, c access.Caller, d access.Decision) {
	h.writeFailure(w, r.WithContext(context.WithValue(r.Context(), askerKey{}, asker{c, d.Role})), failureOf(d))
}

// Bounds of the lines that one caller, or one address without proof, has in the log of refusals.
const (
	refusalsPerSecond = 5
	refusalsAtOnce    = 100
)

// noteRefusal writes who was refused what. It has nothing of what was presented as proof.
func (h *handler) noteRefusal(r *http.Request, f *failure) {
	c, address := askerOf(r).Caller, h.addressOf(r)
	who := address
	if !c.Anonymous() {
		who = c.Issuer + " " + c.Subject
	}
	if !h.refused.allow(who) {
		h.Refusals.LeaveOut()
		return
	}
	h.Refusals.Write(refusals.Refusal{
		Request: requestIDOf(r), Method: access.Clean(r.Method, 20), Path: access.Clean(r.URL.Path, 300), Address: address,
		Issuer: access.Clean(c.Issuer, access.MaxIssuerBytes), Subject: access.Clean(c.Subject, access.MaxSubjectBytes), Token: c.Token,
		Client: access.Clean(r.UserAgent(), access.MaxClientBytes), Code: f.code, Reason: access.Clean(f.message, 500),
	}, time.Now())
}

// WhoAmI is GET /v1/whoami.
type WhoAmI struct {
	// Mode is open or required.
	Mode    string `json:"mode"`
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
	Name    string `json:"name,omitempty"`
	Email   string `json:"email,omitempty"`
	// Token is the id of the token that was presented.
	Token string `json:"token,omitempty"`
	// Verbs are what it is for, if that is less than what its role allows.
	Verbs []string `json:"verbs,omitempty"`
	// Expires is when the token does.
	Expires time.Time `json:"expires,omitzero"`
	// Roles are by queue; a queue in which the caller has none is left out.
	Roles map[string]string `json:"roles"`
	// May lists each verb with whether the caller may do it, if the request names a queue.
	May []Permission `json:"may,omitempty"`
}

// Permission is whether a caller may do something to a queue, or to a change of it.
type Permission struct {
	Verb    string `json:"verb"`
	Allowed bool   `json:"allowed"`
	// Own is whether the caller may do it to its own changes alone, where the request names none.
	Own bool `json:"allowed_for_own_changes,omitempty"`
	// Message says why not, and Advice what to do.
	Message string `json:"message,omitempty"`
	Advice  string `json:"advice,omitempty"`
}

func (h *handler) serveWhoAmI(w http.ResponseWriter, r *http.Request) {
	a := askerOf(r)
	out := WhoAmI{Mode: configuration.AccessRequired, Issuer: a.Issuer, Subject: a.Subject, Name: a.Shown(), Email: a.Email, Token: a.Token, Roles: map[string]string{}}
	if h.rules.Open() {
		out.Mode = configuration.AccessOpen
	}
	if t, is := h.token(a.Token); is {
		out.Expires, out.Verbs = t.Expires, verbNames(t.Verbs)
	}
	for _, queue := range h.Backend.Queues() {
		if role := h.rules.RoleIn(a.Caller, queue); role > access.NoRole {
			out.Roles[queue] = role.String()
		}
	}
	query := r.URL.Query()
	if queue := query.Get("queue"); queue != "" {
		var err error
		if out.May, err = h.permissions(r, queue, query.Get("change")); err != nil {
			h.writeFailure(w, r, err)
			return
		}
	}
	writeJSON(w, http.StatusOK, out)
}

// permissions returns what who sends a request may do to a queue and, if it names one, to a change. Whoever may not read the queue learns
// neither whether it is there nor whose its changes are.
func (h *handler) permissions(r *http.Request, queue, change string) (may []Permission, err error) {
	var owner access.Owner
	if h.mayRead(r, queue) {
		if !slices.Contains(h.Backend.Queues(), queue) {
			return nil, h.unknownQueue(r, queue)
		}
		if change != "" {
			owner = h.ownerOf(queue, change)
		}
	}
	for _, v := range access.Verbs() {
		d := h.rules.Decide(askerOf(r).Caller, v, queue, owner)
		own := change == "" && !d.Allowed && h.rules.Decide(askerOf(r).Caller, v, queue, access.Owner{New: true}).Allowed
		may = append(may, Permission{string(v), d.Allowed, own, d.Reason, d.Advice})
	}
	return may, nil
}

const (
	// maxClaims and maxQuestionBytes bound what is asked about somebody.
	maxClaims        = 100
	maxQuestionBytes = 1000
)

// AccessExplanation is GET /v1/queues/{queue}/access.
type AccessExplanation access.Explanation

// serveAccess says whether somebody may do something to the queue, and what each rule says.
func (h *handler) serveAccess(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := access.Question{User: query.Get("user"), Verb: query.Get("verb"), Queue: r.PathValue("queue"), Issuer: query.Get("issuer"), Email: query.Get("email"), Claims: query["claim"]}
	bad := func(message string) {
		h.writeFailure(w, r, fail(http.StatusBadRequest, string(admission.BadRequest), message, "See /v1/openapi.yaml."))
	}
	if len(q.Claims) > maxClaims || q.User == "" {
		bad(fmt.Sprintf("user is missing, or there are more than %d claims.", maxClaims))
		return
	}
	for _, text := range append([]string{q.User, q.Issuer, q.Email}, q.Claims...) {
		if !printable(text, maxQuestionBytes) {
			bad(fmt.Sprintf("user, issuer, email or a claim is not printable text of at most %d bytes.", maxQuestionBytes))
			return
		}
	}
	if !slices.Contains(h.Backend.Queues(), q.Queue) {
		h.writeFailure(w, r, h.unknownQueue(r, q.Queue)) // by a token for a queue that there was
		return
	}
	out, err := access.ExplainTo(h.Access, h.Backend.Queues(), q)
	if err != nil {
		bad(sentence(err.Error()))
		return
	}
	writeJSON(w, http.StatusOK, AccessExplanation(out))
}

func verbNames(verbs []access.Verb) (names []string) {
	for _, v := range verbs {
		names = append(names, string(v))
	}
	return names
}

// Token is a token without its secret.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Role    string    `json:"role"`
	Queues  []string  `json:"queues"`
	Verbs   []string  `json:"verbs,omitempty"`
	Created time.Time `json:"created"`
	// CreatedBy is who made it.
	CreatedBy string    `json:"created_by,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Revoked   time.Time `json:"revoked,omitzero"`
	// LastUse is when it was used, to the day.
	LastUse time.Time `json:"last_use,omitzero"`
}

// TokenList is GET /v1/tokens, oldest first.
type TokenList struct {
	Tokens []Token `json:"tokens"`
}

// TokenBody asks for a token: for a role or for verbs, in queues (* is every one), for a time (720h; none: for ever).
type TokenBody struct {
	Name   string   `json:"name"`
	Role   string   `json:"role,omitempty"`
	Verbs  []string `json:"verbs,omitempty"`
	Queues []string `json:"queues"`
	TTL    string   `json:"ttl,omitempty"`
}

// TokenReply has a new token, with its secret: nobody is shown it again.
type TokenReply struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

// RevokeBody is why a token is revoked.
type RevokeBody struct {
	Why string `json:"why,omitempty"`
}

// ShowToken returns a token as the API shows it.
func ShowToken(t access.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, Role: t.Role.String(), Queues: t.Queues, Verbs: verbNames(t.Verbs), Created: t.Created,
		CreatedBy: t.By.GetName(), Expires: t.Expires, Revoked: t.Revoked, LastUse: t.LastUse,
	}
}

// ParseGrant reads what a token is for.
func ParseGrant(b TokenBody) (g access.Grant, ttl time.Duration, err error) {
	g.Queues = b.Queues
	for _, name := range b.Verbs {
		v, known := access.ParseVerb(name)
		if !known {
			return g, 0, fmt.Errorf("%q is no verb; verbs are %s", access.Clean(name, 40), strings.Join(verbNames(access.Verbs()), ", "))
		}
		g.Verbs = append(g.Verbs, v)
	}
	g.Role = access.RoleFor(g.Verbs)
	if b.Role != "" {
		var known bool
		if g.Role, known = access.ParseRole(b.Role); !known {
			return g, 0, fmt.Errorf("%q is no role; roles are viewer, contributor, lander, operator and admin", access.Clean(b.Role, 40))
		}
	}
	if b.TTL != "" {
		if ttl, err = configuration.ParseDuration(b.TTL); err != nil || ttl <= 0 {
			return g, 0, fmt.Errorf("the ttl %q is not a time, such as 720h", access.Clean(b.TTL, 40))
		}
	}
	return g, ttl, g.Check()
}

func (h *handler) serveTokens(w http.ResponseWriter, r *http.Request) {
	at, err := h.readyAt(r)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	list := TokenList{Tokens: []Token{}}
	var all []access.Token
	if h.Tokens != nil {
		all = h.Tokens.Tokens()
	}
	for _, t := range all {
		made := true
		if !at.IsZero() {
			t, made = t.At(at)
		}
		if made && h.manages(r, t.Queues) == nil {
			list.Tokens = append(list.Tokens, ShowToken(t))
		}
	}
	writeJSON(w, http.StatusOK, list)
}

// token returns the token of an id.
func (h *handler) token(id string) (t access.Token, known bool) {
	if h.Tokens == nil {
		return t, false
	}
	return h.Tokens.Token(id)
}

// manages returns nil if who sends a request manages tokens in all of the queues.
func (h *handler) manages(r *http.Request, queues []string) error {
	for _, queue := range queues {
		// Only who manages tokens everywhere has the role in a queue of the name *, which no queue has.
		if d := h.rules.Decide(askerOf(r).Caller, access.ManageTokens, queue, access.Owner{}); !d.Allowed {
			return failureOf(d)
		}
	}
	return nil
}

func (h *handler) serveTokenCreate(w http.ResponseWriter, r *http.Request) {
	var body TokenBody
	if err := readJSON(w, r, &body, false); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	reply, err := h.createToken(r, body)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusCreated, reply)
}

func (h *handler) createToken(r *http.Request, body TokenBody) (TokenReply, error) {
	bad := func(err error) (TokenReply, error) {
		return TokenReply{}, fail(http.StatusBadRequest, string(admission.BadRequest), sentence(err.Error()), "See /v1/openapi.yaml.")
	}
	if err := h.Backend.Ready(); err != nil {
		return TokenReply{}, err
	}
	g, ttl, err := ParseGrant(body)
	if err != nil {
		return bad(err)
	}
	if err := h.manages(r, g.Queues); err != nil {
		return TokenReply{}, err
	}
	for _, queue := range g.Queues {
		if queue != access.AllQueues && !slices.Contains(h.Backend.Queues(), queue) {
			return TokenReply{}, h.unknownQueue(r, queue)
		}
	}
	now := h.Clock()
	var expires time.Time
	if ttl > 0 {
		expires = now.Add(ttl)
	}
	if own, is := h.token(askerOf(r).Token); is {
		if len(own.Verbs) > 0 && (len(g.Verbs) == 0 || slices.ContainsFunc(g.Verbs, func(v access.Verb) bool { return !slices.Contains(own.Verbs, v) })) {
			return TokenReply{}, fail(http.StatusForbidden, string(access.Forbidden), "Your token is for "+strings.Join(verbNames(own.Verbs), ", ")+" alone, and makes none that may do more.", "Name verbs of these.")
		}
		if !own.Expires.IsZero() && (expires.IsZero() || expires.After(own.Expires)) {
			expires = own.Expires // else it would make itself last for ever
		}
	}
	id, hash, text := access.NewToken()
	m, err := access.Created(id, hash, body.Name, g, expires, now, askerOf(r).actor())
	if err != nil {
		return bad(err)
	}
	if err := h.Tokens.Grant(r.Context(), m); err != nil {
		return TokenReply{}, err
	}
	made, is := h.token(id)
	if !is {
		return TokenReply{}, fail(http.StatusConflict, codeNotApplied, fmt.Sprintf("There are %d tokens, the most that there may be.", access.MaxTokens), "Revoke some.")
	}
	return TokenReply{Token: ShowToken(made), Secret: text}, nil
}

func (h *handler) serveTokenRevoke(w http.ResponseWriter, r *http.Request) {
	var body RevokeBody
	if err := readJSON(w, r, &body, true); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	token, err := h.revokeToken(r, body)
	if err != nil {
		h.writeFailure(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, token)
}

func (h *handler) revokeToken(r *http.Request, body RevokeBody) (Token, error) {
	if err := h.Backend.Ready(); err != nil {
		return Token{}, err
	}
	if !printable(body.Why, maxWhyBytes) {
		return Token{}, fail(http.StatusBadRequest, string(admission.BadRequest), fmt.Sprintf("why is not printable text of at most %d bytes.", maxWhyBytes), "Shorten it.")
	}
	id := r.PathValue("token")
	t, known := h.token(id)
	// Whoever does not manage it does not learn that it exists.
	refused := h.manages(r, t.Queues)
	if f := (*failure)(nil); known && errors.As(refused, &f) {
		h.noteRefusal(r, f)
	}
	if !known || refused != nil {
		return Token{}, fail(http.StatusNotFound, codeNotFound, "There is no such token, or it is not yours to revoke.", "`landfall token list` lists them.")
	}
	if err := h.Tokens.Grant(r.Context(), &eventsv1.TokenRevoked{Token: id, Why: body.Why, StampUs: h.Clock().UnixMicro(), Actor: askerOf(r).actor()}); err != nil {
		return Token{}, err
	}
	t, _ = h.token(id)
	return ShowToken(t), nil
}
