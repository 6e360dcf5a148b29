package secretplace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

func TestAValueComesFromAFileAVariableOrACommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OF_THE_SERVICE", "of a variable")
	for want, place := range map[string]configuration.SecretPlace{
		"of a file": {File: file}, "of a variable": {Environment: "OF_THE_SERVICE"},
		// It has the service's own environment, as a helper of a vault needs.
		"by a command of a variable": {Command: []string{"sh", "-c", "printf %s \"by a command $OF_THE_SERVICE\""}},
	} {
		if got, err := Read(t.Context(), place, 100); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}

func TestWhatIsWrongIsToldWithoutTheValue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(strings.Repeat("hunter2", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OF_THE_SERVICE", strings.Repeat("hunter2", 20))
	for _, c := range []struct {
		place configuration.SecretPlace
		want  string
	}{
		{configuration.SecretPlace{}, "names no file, variable or command"},
		{configuration.SecretPlace{File: file + "x"}, "no such file"},
		{configuration.SecretPlace{File: file}, "more than 100 bytes"},
		{configuration.SecretPlace{Environment: "NOT_SET"}, "no variable NOT_SET"},
		{configuration.SecretPlace{Environment: "OF_THE_SERVICE"}, "more than 100 bytes"},
		{configuration.SecretPlace{Command: []string{"sh", "-c", "echo hunter2; echo hunter2 >&2; exit 3"}}, "exit status 3"},
		{configuration.SecretPlace{Command: []string{"no-such-program-of-the-tests"}}, "not found"},
		{configuration.SecretPlace{Command: []string{"sh", "-c", "while :; do echo hunter2-hunter2; done"}}, "more than 100 bytes"},
	} {
		got, err := Read(t.Context(), c.place, 100)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || got != nil {
			t.Errorf("%+v: %q, %v", c.place, got, err)
		}
	}
}
