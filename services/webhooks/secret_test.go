package webhooks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/platform/configuration"
)

func TestASecretComesFromAFileAVariableOrACommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEBHOOK_SECRET", "of a variable")
	for want, place := range map[string]configuration.SecretPlace{
		"of a file": {File: file}, "of a variable": {Environment: "WEBHOOK_SECRET"}, "of a command\n": {Command: []string{"echo", "of a command"}},
	} {
		if got, err := ReadSecret(t.Context(), place); err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	for _, place := range []configuration.SecretPlace{{File: file + "x"}, {Environment: "NO_SUCH_VARIABLE"}, {}, {Command: []string{"sh", "-c", "echo hidden; exit 3"}}} {
		if got, err := ReadSecret(t.Context(), place); err == nil || strings.Contains(err.Error(), "hidden;") && len(place.Command) == 0 {
			t.Errorf("%v: %q, %v", place, got, err)
		}
	}
}
