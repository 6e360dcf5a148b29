package api

import "landfall.build/services/gateway/web"

// servePages adds the web page's routes. They are no part of the API, so openapi.yaml does not have them.
func (h *handler) servePages() {
	for _, f := range web.Files() {
		h.mux.Handle("GET "+f.Path, f)
	}
}
