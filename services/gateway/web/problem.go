package web

import (
	"bytes"
	"html/template"
	"net/http"
)

// Problem is what a browser is shown in place of the page that it was on its way to.
type Problem struct {
	Title, Message, Advice string
	// Again is the path at which the reader tries again, "" if that cannot help.
	Again string
}

var problem = template.Must(template.New("problem").Parse(`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>{{.Title}} · Landfall</title>
    <link rel="icon" href="/icon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/page.css">
  </head>
  <body>
    <header class="top"><a class="brand" href="/">Landfall</a></header>
    <main>
      <h1>{{.Title}}</h1>
      <section class="notice">
        <p><bdi>{{.Message}}</bdi></p>
        <p>{{.Advice}}</p>
        <p class="line">{{if .Again}}<a href="{{.Again}}">Try again</a> {{end}}<a href="/">All queues</a></p>
      </section>
    </main>
  </body>
</html>
`))

// Write answers a request with the problem.
func (p Problem) Write(w http.ResponseWriter, status int) {
	var text bytes.Buffer
	if err := problem.Execute(&text, p); err != nil {
		http.Error(w, p.Title, status) // a template that is parsed, of strings, cannot fail
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", Policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(text.Bytes())
}
