package logview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Bounds of what a line shows of a record; --json and --full show all.
const (
	shownText  = 160
	shownItems = 12
)

// shorten cuts long texts and long lists in a JSON value, and leaves the order of its fields.
func shorten(value json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var out bytes.Buffer
	if err := shortenValue(d, &out); err != nil {
		return string(value)
	}
	return out.String()
}

func shortenValue(d *json.Decoder, out *bytes.Buffer) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return shortenList(d, token, out)
	case string:
		text := shortText(token)
		encoded, err := json.Marshal(text)
		out.Write(encoded)
		return err
	default:
		encoded, err := json.Marshal(token)
		out.Write(encoded)
		return err
	}
}

func shortText(text string) string {
	if len(text) <= shownText {
		return text
	}
	end := shownText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… (%d more bytes)", text[:end], len(text)-end)
}

// shortenList writes the object or array that an opening bracket begins.
func shortenList(d *json.Decoder, open json.Delim, out *bytes.Buffer) error {
	out.WriteString(open.String())
	left := 0
	for n := 0; d.More(); n++ {
		into := out
		if n >= shownItems && open == '[' {
			left++
			into = &bytes.Buffer{}
		} else if n > 0 {
			out.WriteByte(',')
		}
		if open == '{' {
			if err := shortenValue(d, into); err != nil {
				return err
			}
			into.WriteByte(':')
		}
		if err := shortenValue(d, into); err != nil {
			return err
		}
	}
	if left > 0 {
		fmt.Fprintf(out, ",\"… %d more\"", left)
	}
	end, err := d.Token()
	if err == nil {
		fmt.Fprint(out, end)
	}
	return err
}
