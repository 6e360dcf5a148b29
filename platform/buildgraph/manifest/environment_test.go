package manifest

import (
	"fmt"
	"slices"
	"testing"

	"landfall.build/platform/configuration"
)

func TestAVariableIsWrittenAsInTheConfiguration(t *testing.T) {
	values := []string{
		"1", "+1", "-0", "010", "0x10", "1_000", "1.10", "1.", "1e3", ".5", ".inf", ".nan", "99999999999999999999",
		"true", "False", "yes", "off", `""`, "'1'", "a b", "2026-01-02", "12:30",
	}
	for _, value := range values {
		file := parseFile(FileName, []byte("environment:\n  V: "+value+"\n"))
		if file.problems != nil {
			t.Errorf("%s in a manifest: %v", value, file.problems)
			continue
		}
		text := fmt.Sprintf("version: 1\nrepositories: {r: {url: u}}\nqueues: {q: {repository: r, steps: {environment: {variables: {V: %s}}}}}\n", value)
		config, err := configuration.Parse([]byte(text), "test.yaml", configuration.Defaults{Workers: 1})
		if err != nil {
			t.Errorf("%s in a configuration: %v", value, err)
			continue
		}
		if want := []string{"V=" + config.Queues["q"].Steps.Environment.Variables["V"]}; !slices.Equal(file.environment, want) {
			t.Errorf("%s is %q in a manifest and %q in the configuration", value, file.environment, want)
		}
	}
}
