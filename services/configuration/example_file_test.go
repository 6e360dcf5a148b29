package configuration

import (
	"testing"
)

func TestExampleFileLoads(t *testing.T) {
	c, err := Load("../../schemas/configuration/example.yaml", Defaults{Workers: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.QueueNames()) != 3 {
		t.Errorf("queues: %v", c.QueueNames())
	}
}
