package deploy

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// kubernetes is the release whose schemas documents are held to. Of the module only the files of api/openapi-spec are read.
const kubernetes = "k8s.io/kubernetes@v1.37.2"

// TestTheManifestsFitKubernetesSchemas: the OpenAPI schemas that an API server publishes.
func TestTheManifestsFitKubernetesSchemas(t *testing.T) {
	command := exec.Command("go", "mod", "download", "-json", kubernetes)
	command.Dir = t.TempDir()
	out, err := command.Output()
	var module struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &module); err != nil || decodeErr != nil {
		t.Skipf("the schemas of %s cannot be had: %v %s", kubernetes, err, module.Error)
	}
	schemas := map[string]*jsonschema.Schema{}
	schemaOf := func(apiVersion, kind string) *jsonschema.Schema {
		t.Helper()
		if s := schemas[apiVersion+kind]; s != nil {
			return s
		}
		group, version, grouped := strings.Cut(apiVersion, "/")
		file, name := "apis__"+group+"__"+version+"_openapi.json", "io.k8s.api."+strings.TrimSuffix(group, ".k8s.io")+"."+version+"."+kind
		if !grouped {
			file, name = "api__"+group+"_openapi.json", "io.k8s.api.core."+group+"."+kind
		}
		raw, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/v3", file))
		if err != nil {
			t.Fatal(err)
		}
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(file, document); err != nil {
			t.Fatal(err)
		}
		s, err := compiler.Compile(file + "#/components/schemas/" + name)
		if err != nil {
			t.Fatal(err)
		}
		schemas[apiVersion+kind] = s
		return s
	}
	for _, values := range []string{"", full} {
		for _, document := range render(t, values) {
			raw, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			if err != nil {
				t.Fatal(err)
			}
			fields := value.(map[string]any)
			if err := schemaOf(fields["apiVersion"].(string), fields["kind"].(string)).Validate(value); err != nil {
				t.Errorf("%v\n%s", err, document)
			}
		}
	}
	if _, broken := schemaOf("apps/v1", "StatefulSet").Validate(map[string]any{"spec": map[string]any{"replicas": "two"}}).(*jsonschema.ValidationError); !broken {
		t.Error("a StatefulSet with two replicas in words is valid")
	}
}
