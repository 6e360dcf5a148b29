package api

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// addressOf returns the address of the client: of IPv6 the network, in which one machine has as many as it likes.
func (h *handler) addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "unknown"
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return "unknown"
	}
	address = h.behindProxies(address.Unmap(), r.Header.Values("X-Forwarded-For"))
	if address.Is6() {
		if network, err := address.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

// behindProxies returns for whom a proxy forwards: each adds the address that it was asked from, so the last that is no proxy's own
// is the client's. What stands before that is of the client's making.
func (h *handler) behindProxies(address netip.Addr, forwarded []string) netip.Addr {
	list := strings.Split(strings.Join(forwarded, ","), ",")
	for i := len(list) - 1; i >= 0 && h.isProxy(address); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(list[i]))
		if err != nil {
			break
		}
		address = before.Unmap()
	}
	return address
}

func (h *handler) isProxy(address netip.Addr) bool {
	return slices.ContainsFunc(h.Proxies, func(network netip.Prefix) bool { return network.Contains(address.WithZone("")) })
}

// requestIDHeader names a request in its answer and in the gateway's log.
const requestIDHeader = "X-Request-Id"

var requestIDText = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

type requestIDKey struct{}

// identified gives each request an id: the client's, if that is well-formed, or one of its own.
func identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(requestIDHeader)
		if !requestIDText.MatchString(id) {
			id = rand.Text()[:16]
		}
		w.Header().Set(requestIDHeader, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, id)))
	})
}

func requestIDOf(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}
