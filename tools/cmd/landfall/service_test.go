package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"landfall.build/events"
)

// TestAServiceAloneRefusesAShadow, which would push to the repository that it follows.
func TestAServiceAloneRefusesAShadow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "landfall.config.yaml")
	text := "version: 1\nrepositories: {shop: {url: /nowhere}}\nqueues: {main: {repository: shop, shadow: on}}\nbroker: {brokers: ['127.0.0.1:1']}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{events.ServiceGateway, events.ServiceLander, events.ServiceBuilder} {
		c := serviceCommand(name)
		c.SetOut(io.Discard)
		c.SetErr(io.Discard)
		c.SetArgs([]string{"--config", file})
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "queue main is a shadow") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
