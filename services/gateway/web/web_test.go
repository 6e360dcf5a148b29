package web

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// maxPacked is how large everything is that a browser loads at first, compressed.
const maxPacked = 120_000

func TestThePageIsSmall(t *testing.T) {
	sum, seen := 0, map[string]bool{}
	for _, f := range Files() {
		if !seen[f.tag] {
			seen[f.tag] = true
			sum += len(f.packed)
		}
	}
	t.Logf("the page is %d bytes, compressed", sum)
	if sum > maxPacked {
		t.Errorf("the page is %d bytes, compressed; at most %d", sum, maxPacked)
	}
}

func TestEveryFileIsServedWithThePolicyCompressedOrNot(t *testing.T) {
	for _, f := range Files() {
		for _, encoding := range []string{"", "gzip"} {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Accept-Encoding", encoding)
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			var body io.Reader = w.Body
			if encoding == "gzip" {
				var err error
				if body, err = gzip.NewReader(w.Body); err != nil {
					t.Fatal(f.Path, err)
				}
			}
			if content, err := io.ReadAll(body); err != nil || string(content) != string(f.content) {
				t.Errorf("%s is served as %d bytes, it has %d: %v", f.Path, len(content), len(f.content), err)
			}
			if w.Header().Get("Content-Security-Policy") != Policy || w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s has the headers %v", f.Path, w.Header())
			}
			r.Header.Set("If-None-Match", w.Header().Get("ETag"))
			again := httptest.NewRecorder()
			if f.ServeHTTP(again, r); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
				t.Errorf("%s is sent again to a browser that has it: %d", f.Path, again.Code)
			}
		}
	}
}

// TestThePageHasNoCodeInItsText: the policy would refuse it.
func TestThePageHasNoCodeInItsText(t *testing.T) {
	text := string(index)
	for name, pattern := range map[string]string{"script": `<script>|<script [^>]*>[^<]`, "style": `<style|style=`, "handler": ` on[a-z]+=`, "address elsewhere": `(src|href)="[^/]`} {
		if at := regexp.MustCompile(pattern).FindString(text); at != "" {
			t.Errorf("the page has a %s in its text: %s", name, at)
		}
	}
	for _, f := range Files() {
		for _, address := range regexp.MustCompile(`https?://[a-zA-Z0-9.-]+`).FindAllString(string(f.content), -1) {
			if address != "http://www.w3.org" { // names of XML
				t.Errorf("%s names %s", f.Path, address)
			}
		}
	}
	if !strings.Contains(text, `lang="en"`) {
		t.Error("the page does not say its language")
	}
}
