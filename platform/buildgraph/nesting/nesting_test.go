package nesting

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	deep := strings.Repeat("[", MostBrackets+1)
	long := strings.Repeat("a.", MostParts) + "a"
	for text, wrong := range map[string]bool{
		"":                                 false,
		"a = [[1], [2]]":                   false,
		strings.Repeat("]", 5000):          false,
		strings.Repeat("[]\n", 5000):       false,
		deep[1:]:                           false,
		deep:                               true,
		strings.Repeat("{a=[", 501):        true,
		"a = \"" + deep + "\"":             false,
		"a = '" + long + "'":               false,
		"# " + deep + long:                 false,
		"# a\n" + deep:                     true,
		"a = \"\"\"\n" + deep + "\n\"\"\"": false,
		"a = \"\"\"\n\\\"\"\"\"\n" + deep:  true,
		"a = '''\n''' \n" + long:           true,
		"a = \"\\\"\"\n" + long:            true,
		"a = {k=\"\\\"\", " + long + "=1}": true,
		"a = '\\'\n" + deep:                true,
		"[" + long + "]":                   true,
		long[2:] + " = 1.5":                false,
		long + " = 1":                      true,
		"a = [" + strings.Repeat("1.5, ", 1000) + "]":   false,
		"a = [\"\"\"\n\"\"\", {" + long + "=1}]":        true,
		"a = \"never closed\n" + strings.Repeat("[", 9): false,
	} {
		if err := Check([]byte(text)); (err != nil) != wrong {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
