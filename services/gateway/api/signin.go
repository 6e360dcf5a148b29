package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"landfall.build/engine/admission"
	"landfall.build/platform/access"
	"landfall.build/platform/identity"
	"landfall.build/services/gateway/signin"
	"landfall.build/services/gateway/web"
)

// maxSignOut bounds the body of a request to sign out.
const maxSignOut = 1 << 10

// SignInWays is GET /v1/signin.
type SignInWays struct {
	// Issuers are those by which people sign in.
	Issuers []signin.Way `json:"issuers"`
}

// SignOutBody says which sessions end.
type SignOutBody struct {
	// Everywhere ends all sessions of the person at this gateway, not only the browser's.
	Everywhere bool `json:"everywhere,omitempty"`
}

// SignOutReply is what has ended.
type SignOutReply struct {
	Ended   int    `json:"ended"`
	Message string `json:"message"`
	// Provider is where a browser is sent to sign out at the provider as well.
	Provider string `json:"provider,omitempty"`
}

func (h *handler) serveSignInWays(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, SignInWays{Issuers: h.SignIn.Ways()})
}

func (h *handler) serveSignInStart(w http.ResponseWriter, r *http.Request) {
	location, cookie, err := h.SignIn.Begin(r, r.PathValue("issuer"), r.URL.Query().Get("to"))
	if err != nil {
		h.writeSignInFailure(w, r, err)
		return
	}
	http.SetCookie(w, cookie)
	leave(w, location)
}

func (h *handler) serveSignInCallback(w http.ResponseWriter, r *http.Request) {
	// Whoever comes back has proven nothing, and has the provider asked. So an address has few asked at a time, and few that are wrong.
	address := h.addressOf(r)
	waiting, enough := context.WithTimeout(r.Context(), turnPatience)
	defer enough()
	end, err := h.turns.begin(waiting, "address "+address)
	if err != nil {
		h.writeSignInFailure(w, r, tooMany("The provider is still asked about other sign-ins from this address."))
		return
	}
	defer end()
	if h.callbacks.spent(address) {
		h.writeSignInFailure(w, r, tooMany("There were too many sign-ins from this address that failed."))
		return
	}
	to, cookies, err := h.SignIn.Finish(r, r.PathValue("issuer"))
	if err != nil {
		h.callbacks.allow(address)
		h.writeSignInFailure(w, r, err)
		return
	}
	for _, c := range cookies {
		http.SetCookie(w, c)
	}
	leave(w, to)
}

// leave sends a browser elsewhere. The address that it leaves has a code or a state in it: it is not passed on, and not kept.
func leave(w http.ResponseWriter, location string) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", location)
	w.WriteHeader(http.StatusSeeOther)
}

func (h *handler) serveSignOut(w http.ResponseWriter, r *http.Request) {
	// Anybody may send it.
	r.Body = http.MaxBytesReader(w, r.Body, maxSignOut)
	var body SignOutBody
	if err := readJSON(w, r, &body, true); err != nil {
		h.writeFailure(w, r, err)
		return
	}
	ended, provider, cookie, err := h.SignIn.SignOut(r, body.Everywhere)
	if err != nil {
		h.writeSignInFailure(w, r, err)
		return
	}
	http.SetCookie(w, cookie)
	message := "Signed out."
	if ended == 0 {
		message = "There was no session."
	}
	writeJSON(w, http.StatusOK, SignOutReply{Ended: ended, Message: message, Provider: provider})
}

// writeSignInFailure answers with why somebody is not signed in.
func (h *handler) writeSignInFailure(w http.ResponseWriter, r *http.Request, err error) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch {
	case errors.Is(err, signin.ErrUnknown):
		err = fail(http.StatusNotFound, codeNotFound, sentence(err.Error()), "GET /v1/signin lists the issuers.")
	case errors.Is(err, signin.ErrPlain):
		err = fail(http.StatusForbidden, codeForbidden, sentence(err.Error()), "Serve the gateway over https, and set gateway.url in the configuration.")
	case errors.Is(err, signin.ErrTo):
		err = fail(http.StatusBadRequest, string(admission.BadRequest), sentence(err.Error()), "Begin with a slash, as in /queues/main.")
	case errors.Is(err, identity.ErrUnreachable):
		err = fail(http.StatusServiceUnavailable, codeProviderAway, sentence(err.Error()), "Ask again later. Whoever is signed in goes on.")
	case errors.Is(err, identity.ErrRefused):
		err = fail(http.StatusUnauthorized, string(access.Unauthenticated), sentence(err.Error()), "Sign in again: GET /v1/signin says how, landfall login does it.")
	}
	var f *failure
	if !errors.As(err, &f) || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		h.writeFailure(w, r, err)
		return
	}
	// A browser on its way to a page shows the answer to a person.
	p := web.Problem{Title: "You are not signed in", Message: f.message, Advice: "Go back and sign in once more. If it ends like this again, tell whoever runs Landfall what this page says."}
	if f.status != http.StatusNotFound && f.status != http.StatusBadRequest {
		p.Again = "/v1/signin/" + url.PathEscape(r.PathValue("issuer")) + "/start"
	}
	if f.status != http.StatusUnauthorized {
		p.Advice = f.advice
	}
	p.Write(w, f.status)
}
