package configuration

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// fullQueue has something in every field, so that each can be changed.
func fullQueue(t testing.TB) Queue {
	t.Helper()
	c, err := Load(examplePath, fourCores)
	if err != nil {
		t.Fatal(err)
	}
	queue := c.Queues["shop-main"]
	queue.Analysis.Inputs = []Input{{Folders: []string{"a"}, Files: []string{"b"}}} // Not with the example's adapter.
	queue.Analysis.Hubs = []string{"//e2e:*"}
	queue.Steps.Reports, queue.Steps.Outputs = []string{"**/junit*.xml"}, OutputBounds{MaxSize: MiB, MaxTotal: 2 * MiB}
	queue.Steps.RunsOn = []RunsOn{{Targets: []string{"//a*"}, Labels: []string{"gpu"}}}
	queue.Flaky.Quarantine, queue.Flaky.Above = []Quarantine{{Target: "//a", Until: "2026-12-31", Why: "b"}}, 0.1
	queue.Analysis.Adapters = []AdapterUse{{Adapter: AdapterGo, Folders: []string{"a"}, Except: []string{"b"}, Toolchain: "go1.26.1",
		Steps: []AdapterStep{{Kind: "test", Name: "a", Run: []string{"b"}, Timeout: 1}}}} // Not beside an adapter.
	queue.Analysis.Toolchain, queue.Analysis.ModuleProxy = "go1.26.1", "https://proxy.example.com"
	queue.Analysis.Uncovered = Uncovered{UncoveredWarn, []string{"docs/**"}}
	queue.Analysis.WholeRepositorySteps[1].Image = "go"
	secret := queue.Steps.Secrets["REGISTRY_TOKEN"]
	secret.Environment, secret.Command = "TOKEN", []string{"pass", "show", "token"} // Not beside a file.
	queue.Steps.Secrets["REGISTRY_TOKEN"] = secret
	queue.Admission.Patience = time.Minute
	queue.Base.Prove = ProveWhenNeeded
	queue.Steps.NetworkDeny = []string{"10.20.0.0/16"}
	queue.Steps.Read, queue.Steps.Write = []string{"/opt/android-sdk"}, []string{"/var/cache/shared"}
	queue.Analysis.Bazel.StartupFlags, queue.Analysis.Bazel.QueryFlags = []string{"-a"}, []string{"-b"}
	return queue
}

// Events carry this hash. If it changes, hashDomain has to change with it.
func TestHashIsFrozen(t *testing.T) {
	const want = "9cc59879aac3da46fb98161e3f0dfbf83e96659e55181a5b10f5b4bdc4dddb2d"
	queue := fullQueue(t)
	queue.Steps.Reports, queue.Steps.Outputs = nil, defaultOutputs
	queue.Analysis.Inputs, queue.Analysis.Hubs, queue.Analysis.Toolchain, queue.Analysis.ModuleProxy = nil, nil, "", ""
	queue.Analysis.Bazel, queue.Analysis.Adapters, queue.Flaky = defaultBazel, nil, defaultFlaky
	queue.Admission, queue.Base = defaultAdmission, Base{Prove: ProveIdle}
	queue.Analysis.Uncovered = Uncovered{Policy: UncoveredWholeRepository}
	queue.Steps.Caches, queue.Steps.Secrets, queue.Quotas = nil, nil, Quotas{}
	queue.Steps.Isolation, queue.Steps.Network, queue.Steps.Read, queue.Steps.Write = IsolationBest, NetworkOutbound, nil, nil
	queue.Steps.NetworkDeny, queue.Steps.RunsOn = nil, nil
	for i := range queue.Analysis.WholeRepositorySteps {
		step := &queue.Analysis.WholeRepositorySteps[i]
		step.Dir, step.Caches, step.Secrets, step.Image, step.Exclusive, step.Resources, step.RunsOn = "", nil, nil, "", nil, nil, nil
	}
	if got := queue.Hash().String(); got != want {
		t.Errorf("hash of the example's queue is %s, want %s", got, want)
	}
}

func TestHashDoesNotDependOnHowTheFileIsWritten(t *testing.T) {
	one := mustParse(t, `version: 1
repositories: {shop: {url: a}}
queues:
  main:
    repository: shop
    workers: 4
    steps:
      timeout: 30m
      log_limit: 64MiB
      environment: {path: /bin, variables: {A: "1", B: "2"}}
    speculation: {threshold: 0.05}
`)
	two := mustParse(t, `# other order, units and styles; the defaults written out or left out
queues:
  main:
    speculation: {abort_threshold: 2.5e-2, bypass_threshold: 0.50}
    steps:
      environment:
        variables:
          "B": '2'
          "A": '1'
        path: "/bin"
      log_limit: 65536KiB
      timeout: 1800s
    repository: "shop"
    retries:
repositories: {shop: {url: elsewhere, poll: 9s}}
version: 1
`)
	if one.Queues["main"].Hash() != two.Queues["main"].Hash() {
		t.Errorf("hashes differ for\n%+v\n%+v", one.Queues["main"], two.Queues["main"])
	}
}

// The fields are found by reflection: one that Hash forgets fails here.
func TestEveryFieldChangesTheHash(t *testing.T) {
	seen := map[Hash]string{fullQueue(t).Hash(): "the queue itself"}
	note := func(change string, queue Queue) {
		hash := queue.Hash()
		if earlier, twice := seen[hash]; twice {
			t.Errorf("%s has the hash of %s", change, earlier)
		}
		seen[hash] = change
	}
	changes := 0
	count := countLeaves(reflect.ValueOf(fullQueue(t)))
	for i := range count {
		for _, how := range []string{"other", "zero"} {
			queue := fullQueue(t)
			n := i
			name, changed := changeLeaf(reflect.ValueOf(&queue).Elem(), "queue", &n, how)
			if changed {
				changes++
				note(name+" "+how, queue)
			}
		}
	}
	if changes < 2*28 {
		t.Errorf("only %d changes tried of %d fields", changes, count)
	}
}

func TestHashTellsWherePartsEnd(t *testing.T) {
	with := func(run ...string) Hash {
		queue := fullQueue(t)
		queue.Analysis.WholeRepositorySteps = []Step{{Name: "a", Run: run}}
		return queue.Hash()
	}
	if with("a", "b") == with("ab") || with("a", "") == with("a") || with("ab", "c") == with("a", "bc") {
		t.Error("words run into each other")
	}
	inputs := func(list ...Input) Hash {
		queue := fullQueue(t)
		queue.Analysis.Inputs = list
		return queue.Hash()
	}
	if inputs(Input{Folders: []string{"a"}, Files: []string{"b"}}) == inputs(Input{Files: []string{"a", "b"}}) {
		t.Error("folders and files of an input run into each other")
	}
	variables := func(table map[string]string) Hash {
		queue := fullQueue(t)
		queue.Steps.Environment.Variables = table
		return queue.Hash()
	}
	if variables(map[string]string{"A": "B", "C": "D"}) == variables(map[string]string{"A": "BCD"}) {
		t.Error("variables run into each other")
	}
}

// countLeaves counts what changeLeaf can change.
func countLeaves(value reflect.Value) int {
	count := 0
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			count += countLeaves(value.Field(i))
		}
		return count
	case reflect.Slice:
		for i := range value.Len() {
			count += countLeaves(value.Index(i))
		}
		return count + 1
	case reflect.Map:
		if element := value.Type().Elem(); element.Kind() == reflect.Struct && value.Len() > 0 {
			count = countLeaves(value.MapIndex(value.MapKeys()[0]))
		}
		return count + 1
	}
	return 1
}

// changeLeaf changes the n-th leaf below the value: to another value, or to none.
func changeLeaf(value reflect.Value, name string, n *int, how string) (string, bool) {
	switch value.Kind() {
	case reflect.Struct:
		for i := range value.NumField() {
			field := value.Type().Field(i)
			if name, changed := changeLeaf(value.Field(i), name+"."+field.Name, n, how); changed || *n < 0 {
				return name, changed
			}
		}
		return name, false
	case reflect.Slice:
		for i := range value.Len() {
			if name, changed := changeLeaf(value.Index(i), fmt.Sprintf("%s[%d]", name, i), n, how); changed || *n < 0 {
				return name, changed
			}
		}
	}
	if value.Kind() == reflect.Map && value.Type().Elem().Kind() == reflect.Struct && value.Len() > 0 {
		key := value.MapKeys()[0]
		element := reflect.New(value.Type().Elem()).Elem()
		element.Set(value.MapIndex(key))
		if name, changed := changeLeaf(element, name+"."+key.String(), n, how); changed || *n < 0 {
			value.SetMapIndex(key, element)
			return name, changed
		}
	}
	*n--
	if *n >= 0 {
		return name, false
	}
	if how == "zero" {
		if value.IsZero() {
			return name, false
		}
		value.SetZero()
		return name, true
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString(value.String() + "x")
	case reflect.Int, reflect.Int64:
		value.SetInt(value.Int() + 1)
	case reflect.Float64:
		value.SetFloat(value.Float() / 3)
	case reflect.Pointer:
		other := reflect.New(value.Type().Elem())
		if other.Elem().Kind() == reflect.Int {
			other.Elem().SetInt(value.Elem().Int() + 1)
		} else {
			other.Elem().SetFloat(value.Elem().Float() / 3)
		}
		value.Set(other)
	case reflect.Slice:
		value.Set(reflect.Append(value, reflect.Zero(value.Type().Elem())))
	case reflect.Map:
		if value.Len() == 0 {
			return name, false
		}
		key := value.MapKeys()[0]
		if value.Type().Elem().Kind() == reflect.Struct {
			value.SetMapIndex(reflect.ValueOf("other"), value.MapIndex(key))
			break
		}
		if value.Type().Elem().Kind() == reflect.Int {
			value.SetMapIndex(key, reflect.ValueOf(int(value.MapIndex(key).Int())+1))
			break
		}
		value.SetMapIndex(key, reflect.ValueOf(value.MapIndex(key).String()+"x"))
	default:
		panic("no change for " + value.Type().String())
	}
	return name, true
}
