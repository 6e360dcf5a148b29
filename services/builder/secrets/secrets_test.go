package secrets

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

func TestASecretComesFromAFileAVariableOrACommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("from-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OF_THE_BUILDER", "from-a-variable")
	for want, secret := range map[string]configuration.Secret{
		"from-a-file\n":   {File: file},
		"from-a-variable": {Environment: "OF_THE_BUILDER"},
		// It has the builder's own environment, as a helper of a vault needs.
		"from-a-command-from-a-variable": {Command: []string{"sh", "-c", "printf %s from-a-command-$OF_THE_BUILDER"}},
	} {
		if got, err := Read(t.Context(), "T", secret); err != nil || string(got) != want {
			t.Errorf("%+v: %q, %v", secret, got, err)
		}
	}
}

func TestWhatIsWrongWithASecretIsToldWithoutIt(t *testing.T) {
	for want, secret := range map[string]configuration.Secret{
		"no such file":                {File: filepath.Join(t.TempDir(), "none")},
		"no variable NOT_SET":         {Environment: "NOT_SET"},
		"exit status 3":               {Command: []string{"sh", "-c", "echo hunter2-hunter2; echo hunter2-hunter2 >&2; exit 3"}},
		"not found":                   {Command: []string{"no-such-program-of-the-tests"}},
		"fewer than 8 bytes":          {Command: []string{"echo", "hunter2"}},
		"more than 65536 bytes":       {Command: []string{"sh", "-c", "while :; do echo hunter2-hunter2; done"}},
		"which no variable can have;": {Command: []string{"printf", `hunter2\0hunter2`}, As: configuration.AsVariable},
	} {
		_, err := Read(t.Context(), "T", secret)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "secret T ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", want, err)
		}
	}
}
