package bazelgraph

import (
	"strings"
	"testing"
)

func TestLabelsGoTogetherWhereTheCommandIsBazels(t *testing.T) {
	for _, c := range []struct{ verb, words, group string }{
		{"build", "bazel build -- {label}", "bazel build --keep_going --"},
		{"test", "bazel --host_jvm_args=-Xmx1g test --config=ci -- {label}", "bazel --host_jvm_args=-Xmx1g test --config=ci --keep_going --"},
		{"test", "bazel build -- {label}", ""},
		{"build", "bazel run -- {label}", ""},
		{"build", "bazel build {label}", ""},
		{"build", "wrapper build -- {label}", ""},
		{"build", "bazel build --x={label} -- {label}", ""},
		{"build", "sh -c {label}", ""},
	} {
		o := Options{Binary: "bazel"}
		g := o.groupOf(c.verb, strings.Fields(c.words), "//a:b")
		switch {
		case g == nil && c.group != "":
			t.Errorf("%s: no group", c.words)
		case g != nil && (strings.Join(g.Argv, " ") != c.group || g.Member != "//a:b" || g.Label != "//a:b"):
			t.Errorf("%s: %+v", c.words, g)
		}
	}
}
