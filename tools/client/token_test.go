package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestATokenComesFromTheEnvironmentOrAFileOfOnesOwn(t *testing.T) {
	const token = "landfall_abcdefghijkl_abcdefghijklmnopqrstuvwxyz"
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(tokenVariable, "")
	t.Setenv(tokenFileVariable, "")
	if got, err := ownToken(); got != "" || err != nil {
		t.Errorf("without one: %q, %v", got, err)
	}
	t.Setenv(tokenFileVariable, path)
	if got, err := ownToken(); got != token || err != nil {
		t.Errorf("from the file: %q, %v", got, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if got, err := ownToken(); got != "" || err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("from a file that others can read: %q, %v", got, err)
	}
	t.Setenv(tokenVariable, token)
	if got, err := ownToken(); got != token || err != nil {
		t.Errorf("from the variable: %q, %v", got, err)
	}
	for _, wrong := range []string{"a b", "a\r\nX-Evil: 1", strings.Repeat("a", maxCredential+1), "a\x00"[:2]} {
		if _, err := checkToken(wrong, "x"); err == nil || strings.Contains(err.Error(), wrong) {
			t.Errorf("%.20q: %v", wrong, err)
		}
	}
	for server, safe := range map[string]bool{"https://landfall.example.com": true, "http://127.0.0.1:7878": true, "http://localhost:1": true, "http://landfall.example.com": false, "http://localhost.example.com": false} {
		if isSafe(server) != safe {
			t.Errorf("%s is safe: %v", server, !safe)
		}
	}
}
