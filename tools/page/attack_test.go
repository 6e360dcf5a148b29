package page_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// hurts is added to every text that the gateway answers with.
	hurts = `<img src=x onerror="globalThis.hurt=1"><script>globalThis.hurt=1</script>"'><svg/onload=alert(1)>` + "\u202e\u0000\x1b[31m\u0085"
	// link is every address of something elsewhere.
	link = "javascript:globalThis.hurt=1"
)

// structure are the fields whose texts are not for people: the page finds its way by them.
var structure = []string{
	"queue", "change", "queues", "changes", "names", "ahead", "assumed", "bypassed", "conflicting", "with", "requires", "build", "hash", "kind", "state", "code", "class",
	"role", "token", "pool", "cause", "weekday", "week", "outcome", "topic", "verdict", "verb", "version", "what",
}

// hostile returns a value of a field of an answer in which every text for people hurts, if it runs.
func hostile(value any, field string) any {
	switch v := value.(type) {
	case string:
		_, err := time.Parse(time.RFC3339Nano, v)
		switch {
		case field == "uri" || field == "provider":
			return link
		case err == nil || slices.Contains(structure, field):
			return v
		case field == "description":
			return v + hurts + strings.Repeat("word", 1<<18) // 1 MB
		}
		return v + hurts
	case []any:
		for i := range v {
			v[i] = hostile(v[i], field)
		}
	case map[string]any:
		for name := range v {
			if name != "roles" {
				v[name] = hostile(v[name], name)
			}
		}
	}
	return value
}

func hostileText(text []byte) []byte {
	var value any
	if json.Unmarshal(text, &value) != nil {
		return text
	}
	if text, err := json.Marshal(hostile(value, "")); err == nil {
		return text
	}
	return text
}

// makeHostile has everything hurt that the gateway answers with.
func (f *front) makeHostile() {
	f.proxy.ModifyResponse = func(r *http.Response) error {
		body := r.Body
		switch kind := r.Header.Get("Content-Type"); {
		case strings.HasPrefix(kind, "application/json"):
			text, err := io.ReadAll(body)
			if err != nil {
				return err
			}
			text = hostileText(text)
			r.Body = io.NopCloser(bytes.NewReader(text))
			r.ContentLength = int64(len(text))
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		case strings.HasPrefix(kind, "text/event-stream"):
			in, out := io.Pipe()
			r.Body = in
			go func() {
				defer body.Close()
				lines := bufio.NewReader(body)
				for {
					line, err := lines.ReadBytes('\n')
					if data, is := bytes.CutPrefix(line, []byte("data: ")); is {
						line = append(append([]byte("data: "), hostileText(data)...), '\n')
					}
					if _, failed := out.Write(line); failed != nil || err != nil {
						out.CloseWithError(io.EOF)
						return
					}
				}
			}()
		}
		return nil
	}
}

// TestNothingOfAnyAnswerRuns on any page, whichever text of the gateway's answers is hostile; and none of it is wider than the page.
func TestNothingOfAnyAnswerRuns(t *testing.T) {
	f := newFront(t, started(t, showcase))
	f.makeHostile()
	r := newShowcaseAt(t, f.url)
	r.allow("status of 404") // the change that is not there
	for _, p := range shown {
		for _, s := range []size{{"narrow", 320, 844, true}, sizes[1]} {
			r.window(s, 1, "light")
			r.open(p.path)
			r.until(p.name+" shows what is hostile", func() bool {
				text := evaluate[string](r, `document.querySelector("main")?.innerText ?? ""`)
				return strings.Contains(text, "<script>globalThis.hurt=1</script>") || p.name == "nothing" || p.name == "queue-empty"
			})
			if evaluate[bool](r, `globalThis.hurt !== undefined || document.querySelectorAll("img, iframe, script:not([src='/page.js']), [onerror], [onload], [href^='javascript']").length > 0`) {
				t.Errorf("%s: something of an answer became a part of the page", p.name)
			}
			if odd := evaluate[string](r, `/[\u0000-\u0008\u000b-\u001f\u0080-\u009f\u202a-\u202e].{0,40}/.exec(document.body.innerText)?.[0] ?? ""`); odd != "" {
				t.Errorf("%s shows what a terminal or a line would obey: %q, of\n%s", p.name, odd, r.text())
			}
			r.check(p.name + " on a " + s.name)
		}
	}
}
