package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"unicode/utf8"

	"landfall.build/engine/admission"
	"landfall.build/events"
)

// Codes of failures other than the refusals of package admission.
const (
	codeUnknownChange = "unknown_change"
	codeUnknownTarget = "unknown_target"
	codeNotApplied    = "not_applied"
	codeForbidden     = "forbidden_origin"
	codeMediaType     = "unsupported_media_type"
	codeTooLarge      = "too_large"
	// CodeNotReady is of requests to which nothing was done: asking again later is safe.
	CodeNotReady   = "not_ready"
	codeNotHealthy = "not_healthy"
	codeUnanswered = "unanswered"
	codeNotFound   = "not_found"
	codeMethod     = "method_not_allowed"
	codeNoLog      = "no_log"
	codeInternal   = "internal"
	codeBusy       = "too_many_streams"
	// codeTooMany is of who asks too often, codeProviderAway of an issuer that does not answer.
	codeTooMany      = "too_many_requests"
	codeProviderAway = "provider_unreachable"
	// codeHistoryAway is of a history that does not answer.
	codeHistoryAway = "history_unreachable"
	// codeWhatIfRuns is of a simulation that is asked for while another runs.
	codeWhatIfRuns = "what_if_runs"
	// CodePastUnread is of a moment up to which the log is not folded yet: who asks again is answered.
	CodePastUnread = "past_being_read"
)

type failure struct {
	status                int
	code, message, advice string
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func fail(status int, code, message, advice string) *failure {
	return &failure{status, code, message, advice}
}

// refusalStatus returns the HTTP status of a refusal's code, and what to do.
func refusalStatus(code string) (status int, advice string) {
	switch admission.Code(code) {
	case admission.UnknownQueue:
		return http.StatusNotFound, "GET /v1/queues lists the queues."
	case admission.BadRequest:
		return http.StatusBadRequest, "Correct the request; asking the same again cannot help."
	case admission.NoSuchRef, admission.NoSuchCommit:
		return http.StatusUnprocessableEntity, "Push the branch to the repository that the queue lands on, then ask again."
	case admission.AlreadyIn, admission.Empty:
		return http.StatusUnprocessableEntity, "Nothing needs to be done."
	case admission.UnknownRequirement:
		return http.StatusUnprocessableEntity, "Ask again once that one is in the queue."
	case admission.NotAStack, admission.CyclicRequirement:
		return http.StatusUnprocessableEntity, "Correct the request; asking the same again cannot help."
	case admission.RefMoved, admission.RevisionTaken, admission.TooLate:
		return http.StatusConflict, "Look at the change as it is now, then ask again."
	case admission.Forbidden:
		return http.StatusForbidden, "landfall whoami shows your roles."
	case admission.QueueFull:
		return http.StatusTooManyRequests, "Ask again later."
	case admission.RepositoryUnreachable:
		return http.StatusServiceUnavailable, "Ask again; if it persists, the gateway's log has what git answered."
	}
	return http.StatusUnprocessableEntity, "See the message."
}

func (h *handler) writeFailure(w http.ResponseWriter, r *http.Request, err error) {
	var f *failure
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &f):
	case errors.As(err, &tooLarge):
		f = fail(http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("The body is larger than %d bytes.", tooLarge.Limit), "Send less.")
	case errors.Is(err, ErrUnknownQueue):
		f = fail(http.StatusNotFound, string(admission.UnknownQueue), "There is no such queue.", "GET /v1/queues lists the queues.")
	case errors.Is(err, ErrNotReady):
		f = fail(http.StatusServiceUnavailable, CodeNotReady, "The gateway has just started and is still reading the log.", "Ask again in a moment.")
	case errors.Is(err, ErrUnanswered):
		f = fail(http.StatusGatewayTimeout, codeUnanswered, "The request is in the log and takes effect, but its result was not known in time.", "Look at the change, then ask again if needed.")
	case errors.Is(err, ErrUnconfirmed):
		f = fail(http.StatusGatewayTimeout, codeUnanswered, "The log did not confirm the request: it may or may not take effect.", "Look at the change once the log answers, then ask again if needed.")
	default:
		h.Log.Error("request failed", "request", requestIDOf(r), "method", r.Method, "path", r.URL.Path, "error", err)
		f = fail(http.StatusInternalServerError, codeInternal, "The gateway could not do this.", "Ask again; its log says why.")
	}
	if f.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="landfall"`)
	}
	if f.status == http.StatusUnauthorized || f.status == http.StatusForbidden {
		h.noteRefusal(r, f)
	}
	if f.status == http.StatusServiceUnavailable || f.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, f.status, Failure{FailureDetail{Code: f.code, Message: f.message, Advice: f.advice}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // only floats that are no numbers could do this
		status, text = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"The answer could not be written.","advice":"Report this."}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(text, '\n'))
}

// readJSON reads exactly one JSON value of known fields, and asks once more whether the request is let in: its sender decides when it
// ends. An empty body is the zero value if that is allowed.
func readJSON(w http.ResponseWriter, r *http.Request, into any, emptyAllowed bool) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if r.ContentLength == 0 && emptyAllowed {
		return stillAllowed(r) // pages of other sites are kept out by their origin, which they cannot leave out
	}
	if err != nil || media != "application/json" {
		return fail(http.StatusUnsupportedMediaType, codeMediaType, "The content type is not application/json.", "Send JSON with Content-Type: application/json.")
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, events.MaxRequestBytes))
	if err == nil {
		err = stillAllowed(r)
	}
	if err != nil {
		return err
	}
	if len(text) == 0 && emptyAllowed {
		return nil
	}
	malformed := func(why string) error {
		return fail(http.StatusBadRequest, string(admission.BadRequest), "The body is not the JSON object that this path takes: "+why+".", "See /v1/openapi.yaml.")
	}
	if !utf8.Valid(text) {
		return malformed("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return malformed(clipText(err.Error(), 300))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return malformed("something follows the object")
	}
	return nil
}
