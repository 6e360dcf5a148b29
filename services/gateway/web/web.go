// Package web serves the web page: what happens in the queues and why. src has its sources, and dist what tools/page makes of them,
// which is committed and in the binary. The page uses the public API alone.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

var (
	//go:embed index.html
	index []byte
	//go:embed icon.svg
	icon []byte
	//go:embed dist/page.js
	script []byte
	//go:embed dist/page.css
	style []byte
	//go:embed dist/worker.js
	worker []byte
)

// Policy is the Content-Security-Policy of all files: nothing comes from elsewhere, nothing is written into the page's text as code.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; worker-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types landfall"

// File is a file of the page.
type File struct {
	// Path is where it is served, or the pattern of several such paths.
	Path    string
	kind    string
	content []byte
	packed  []byte
	tag     string
}

// Files returns the files of the page. The first is the page itself, at each of its addresses.
func Files() []File {
	page := "text/html; charset=utf-8"
	files := []File{
		{Path: "/{$}", kind: page, content: index},
		{Path: "/services", kind: page, content: index},
		{Path: "/dead-letters", kind: page, content: index},
		{Path: "/access", kind: page, content: index},
		{Path: "/pools/{pool}", kind: page, content: index},
		{Path: "/queues/{queue}", kind: page, content: index},
		{Path: "/queues/{queue}/models", kind: page, content: index},
		{Path: "/queues/{queue}/analytics", kind: page, content: index},
		{Path: "/queues/{queue}/flakes", kind: page, content: index},
		{Path: "/queues/{queue}/changes/{change}", kind: page, content: index},
		{Path: "/page.js", kind: "text/javascript; charset=utf-8", content: script},
		{Path: "/worker.js", kind: "text/javascript; charset=utf-8", content: worker},
		{Path: "/page.css", kind: "text/css; charset=utf-8", content: style},
		{Path: "/icon.svg", kind: "image/svg+xml", content: icon},
	}
	for i := range files {
		f := &files[i]
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		w.Write(f.content)                                         // a buffer takes everything
		w.Close()
		f.packed = packed.Bytes()
		sum := sha256.Sum256(f.content)
		f.tag = hex.EncodeToString(sum[:8])
	}
	return files
}

// ServeHTTP serves the file. A browser asks each time whether it has changed, so that a page is never of two versions.
func (f File) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", f.kind)
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	content, tag := f.content, f.tag
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content, tag = f.packed, f.tag+"-gzip"
	}
	header.Set("ETag", `"`+tag+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), `"`+tag+`"`) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", fmt.Sprint(len(content)))
	w.Write(content)
}
