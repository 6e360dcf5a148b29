package configuration

import (
	"fmt"
	"maps"
	"net/url"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"landfall.build/platform/buildgraph/glob"
)

// checkRules checks what tags cannot say: fields against each other, and texts with
// a grammar of their own.
func checkRules(c *Configuration, f *findings) {
	for _, name := range c.repositoryNames() {
		at := root.child("repositories").child(name).child("url")
		if f.sound(at) && f.given(at) {
			if message, advice := checkURL(c.Repositories[name].URL); message != "" {
				f.add(at, message, advice)
			}
		}
	}
	for _, name := range c.QueueNames() {
		checkQueue(c, c.Queues[name], root.child("queues").child(name), f)
	}
	checkRoles(c, root.child("access"), f)
	checkWebhooks(c, root.child("webhooks"), f)
	checkHosts(c, root.child("hosts"), f)
	checkAccess(c.Access, root.child("access"), f)
	brokers := root.child("broker").child("brokers")
	first := map[string]int{}
	for i, broker := range c.Broker.Brokers {
		place := brokers.index(i)
		if !f.sound(place) {
			continue
		}
		if message := checkAddress(broker, false); message != "" {
			f.add(place, message, "as in kafka-1.example.com:9092")
		}
		if earlier, twice := first[broker]; twice {
			f.add(place, fmt.Sprintf("%s is entry %d as well", quote(broker), earlier), "remove one")
			continue
		}
		first[broker] = i
	}
	checkBrokerAccess(c.Broker, root.child("broker"), f)
	checkArchive(c.Broker.Archive, root.child("broker").child("archive"), f)
	checkGateway(c.Gateway, root.child("gateway"), f)
	logs := root.child("retention").child("logs")
	if k, age, failed := c.Retention.Logs, logs.child("age"), logs.child("failed_age"); f.sound(age, failed) && k.FailedAge < k.Age {
		f.add(failed, fmt.Sprintf("is %v, must be at least age, %v", k.FailedAge, k.Age), "logs of failures are read more often")
	}
	runtime := root.child("builder").child("container_runtime")
	if f.sound(runtime) && c.Builder.ContainerRuntime != "" && !filepath.IsAbs(c.Builder.ContainerRuntime) {
		f.add(runtime, fmt.Sprintf("is %s, must be an absolute path", quote(c.Builder.ContainerRuntime)), "as in /usr/bin/podman")
	}
	checkSharedOutputs(c.Builder.Outputs, root.child("builder").child("outputs"), f)
	checkAmounts(c.Builder.Resources, root.child("builder").child("resources"), f)
	checkLabels(c.Builder.Labels, root.child("builder").child("labels"), f)
	dsn := root.child("clickhouse").child("dsn")
	if f.sound(dsn) && c.ClickHouse.DSN != "" && !isDSN(c.ClickHouse.DSN) {
		// Its text is not repeated: there is a password in it.
		f.add(dsn, "is not a DSN of ClickHouse's native protocol with a database", "as in clickhouse://user:password@clickhouse.example.com:9000/landfall")
	}
}

func isDSN(text string) bool {
	at, err := url.Parse(text)
	return err == nil && (at.Scheme == "clickhouse" || at.Scheme == "tcp") && at.Host != "" && len(at.Path) > 1
}

func checkQueue(c *Configuration, queue Queue, at *path, f *findings) {
	repository := at.child("repository")
	if _, known := c.Repositories[queue.Repository]; !known && f.given(repository) && f.sound(repository) {
		f.add(repository, fmt.Sprintf("is %s, which is not under repositories", quote(queue.Repository)),
			adviseName(queue.Repository, c.repositoryNames()))
	}
	if pool := at.child("pool"); f.sound(pool) && !c.hasPool(queue.Pool) {
		f.add(pool, fmt.Sprintf("is %s, which is not under pools", quote(queue.Pool)), adviseName(queue.Pool, slices.Sorted(maps.Keys(c.Pools))))
	}
	branch := at.child("branch")
	if f.sound(branch) {
		if message, advice := checkBranch(queue.Branch); message != "" {
			f.add(branch, message, advice)
		}
	}
	checkSpeculation(queue, at, f)
	checkSteps(queue, at, f)
	checkQuotas(queue.Quotas, at.child("quotas"), f)
	success, conflict := at.child("priors").child("success"), at.child("priors").child("conflict")
	if f.sound(success, conflict) && queue.Priors.Conflict > queue.Priors.Success {
		f.add(conflict, fmt.Sprintf("is %g, must be at most success, %g", queue.Priors.Conflict, queue.Priors.Success),
			"it is the probability to be green alone and red together, so part of success")
	}
}

func checkSpeculation(queue Queue, at *path, f *findings) {
	speculation := at.child("speculation")
	threshold, abort := speculation.child("threshold"), speculation.child("abort_threshold")
	s := queue.Speculation
	if f.sound(threshold, abort) && s.AbortThreshold >= s.Threshold && s.AbortThreshold > 0 {
		f.add(abort, fmt.Sprintf("is %g, must be lower than threshold, %g", s.AbortThreshold, s.Threshold),
			"without a distance builds are aborted and started again in turn")
	}
	workers, candidates := at.child("workers"), speculation.child("candidates")
	if f.sound(workers, candidates) && s.Candidates < queue.Workers {
		f.add(candidates, fmt.Sprintf("is %d, must be at least workers, %d", s.Candidates, queue.Workers),
			"workers beyond it would never get a build")
	}
}

func checkSteps(queue Queue, at *path, f *findings) {
	steps := at.child("steps")
	limit, tail := steps.child("log_limit"), steps.child("output_tail")
	if f.sound(limit, tail) && queue.Steps.OutputTail > queue.Steps.LogLimit {
		f.add(tail, fmt.Sprintf("is %v, must be at most log_limit, %v", queue.Steps.OutputTail, queue.Steps.LogLimit), "")
	}
	checkEnvironment(queue.Steps.Environment, steps.child("environment"), f)
	checkCaches(queue.Steps.Caches, steps.child("caches"), f)
	checkSecrets(queue.Steps, steps.child("secrets"), f)
	for i, text := range queue.Steps.Reports {
		checkPathPattern(text, steps.child("reports").index(i), f)
	}
	checkIsolation(queue.Steps, steps, f)

	analysis := at.child("analysis")
	list := analysis.child("whole_repository_steps")
	if queue.Analysis.Adapter == AdapterWholeRepository && len(queue.Analysis.WholeRepositorySteps) == 0 &&
		f.sound(list, analysis.child("adapter")) {
		f.add(list, "is empty, must have a step with the adapter whole-repository", "name the commands that prove a tree green")
	}
	first := map[string]int{}
	for i, step := range queue.Analysis.WholeRepositorySteps {
		place := list.index(i)
		name := place.child("name")
		if earlier, twice := first[step.Name]; twice && f.given(name) && f.sound(name) {
			f.add(name, fmt.Sprintf("%s is the name of step %d as well", quote(step.Name), earlier), "give each step a name of its own")
		} else {
			first[step.Name] = i
		}
		checkCommand(step.Run, place.child("run"), f)
		if dir := place.child("dir"); step.Dir != "" && f.sound(dir) && (!filepath.IsLocal(step.Dir) || pathpkg.Clean(step.Dir) != step.Dir || step.Dir == ".") {
			f.add(dir, "is "+quote(step.Dir)+", must be a folder of the tree", "write it relative to the repository's root, without . and .. in it")
		}
		checkClaims(step, place, f)
		for j, name := range step.Secrets {
			if at := place.child("secrets").index(j); f.sound(at) {
				if _, known := queue.Steps.Secrets[name]; !known {
					f.add(at, fmt.Sprintf("is %s, which is not under steps.secrets", quote(name)), adviseName(name, slices.Sorted(maps.Keys(queue.Steps.Secrets))))
				}
			}
		}
		for j, name := range step.Caches {
			if at := place.child("caches").index(j); f.sound(at) {
				if _, known := queue.Steps.Cache(name); !known {
					f.add(at, fmt.Sprintf("is %s, which is not under steps.caches", quote(name)),
						adviseName(name, append(slices.Sorted(maps.Keys(queue.Steps.Caches)), StandardCaches()...)))
				}
			}
		}
	}
	for i, r := range queue.Steps.RunsOn {
		checkLabels(r.Labels, at.child("steps").child("runs_on").index(i).child("labels"), f)
	}
	checkFlaky(queue.Flaky, at.child("flaky"), f)
	checkAdapters(queue.Analysis, analysis, f)
	checkInputs(queue.Analysis, analysis, f)
	checkHubs(queue.Analysis, analysis, f)
	checkUncovered(queue.Analysis, analysis, f)
	checkGo(queue.Analysis, analysis, f)
	checkBazel(queue.Analysis.Bazel, analysis.child("bazel"), f)
}

// usedAdapters names the adapters of a queue.
func usedAdapters(analysis Analysis) string {
	names := []string{string(analysis.Adapter)}
	if len(analysis.Adapters) > 0 {
		names = nil
		for _, use := range analysis.Adapters {
			names = append(names, string(use.Adapter))
		}
	}
	return strings.Join(names, ", ")
}

// checkAdapters checks those of a repository with several build systems. Each may be there once.
func checkAdapters(analysis Analysis, at *path, f *findings) {
	list := at.child("adapters")
	if adapter := at.child("adapter"); len(analysis.Adapters) > 0 && f.given(adapter) && f.sound(list, adapter) {
		f.add(list, "is given beside adapter, must be the only one of both", "name all adapters in the list")
	}
	if len(analysis.Adapters) > 0 && analysis.Toolchain != "" && f.sound(list, at.child("toolchain")) {
		f.add(at.child("toolchain"), "is given beside adapters, must be left out", "give each adapter of the list its own toolchain")
	}
	first := map[Adapter]int{}
	for i, use := range analysis.Adapters {
		place := list.index(i)
		if earlier, twice := first[use.Adapter]; twice && f.sound(place.child("adapter")) {
			f.add(place.child("adapter"), fmt.Sprintf("is %s, which is adapter %d as well", use.Adapter, earlier), "name all its folders in one")
		}
		first[use.Adapter] = i
		if steps := place.child("steps"); len(use.Steps) > 0 && (use.Adapter == AdapterManifest || use.Adapter == AdapterBazel) && f.sound(steps) {
			f.add(steps, "is not for the adapter "+string(use.Adapter)+", must be empty", "landfall.yaml and analysis.bazel have the commands of theirs")
		}
		for j, step := range use.Steps {
			checkCommand(step.Run, place.child("steps").index(j).child("run"), f)
		}
		for field, texts := range map[string][]string{"folders": use.Folders, "except": use.Except} {
			folders := place.child(field)
			if use.Adapter == AdapterBazel && len(texts) > 0 && f.sound(folders) {
				f.add(folders, "is not for the adapter bazel, must be empty", "it sees the whole tree")
			}
			for j, text := range texts {
				if text != "." {
					checkPathPattern(text, folders.index(j), f)
				}
			}
		}
	}
}

// mostOfAResource bounds how much of a resource a builder has, and a step takes.
const mostOfAResource = 1_000_000_000

// imagePattern is the manifest's: a tag would mean something else tomorrow.
var imagePattern = compiled(`^[A-Za-z0-9][A-Za-z0-9._/:-]{0,254}@sha256:[0-9a-f]{64}$`)

func checkClaims(step Step, at *path, f *findings) {
	if image := at.child("image"); f.sound(image) && step.Image != "" && !imagePattern().MatchString(step.Image) {
		f.add(image, fmt.Sprintf("is %s, must be an image with its digest", quote(step.Image)), "write it as name@sha256:… with 64 hexadecimal digits")
	}
	for i, name := range step.Exclusive {
		if place := at.child("exclusive").index(i); f.sound(place) {
			checkPattern(name, "name", "", place, f)
		}
	}
	checkAmounts(step.Resources, at.child("resources"), f)
	checkLabels(step.RunsOn, at.child("runs_on"), f)
}

func checkLabels(labels []string, at *path, f *findings) {
	for i, label := range labels {
		if place := at.index(i); f.sound(place) {
			checkPattern(label, "name", "", place, f)
		}
	}
}

func checkAmounts(amounts map[string]int, at *path, f *findings) {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if place := at.child(name); f.sound(place) && (amounts[name] < 1 || amounts[name] > mostOfAResource) {
			f.add(place, fmt.Sprintf("is %d, must be at least 1, at most %d", amounts[name], mostOfAResource), "")
		}
	}
}

func checkGo(analysis Analysis, at *path, f *findings) {
	toolchain, proxy := at.child("toolchain"), at.child("module_proxy")
	other := func(place *path, text, names string, adapters ...Adapter) {
		if text != "" && !analysis.UsesAny(adapters...) && f.sound(place, at.child("adapter"), at.child("adapters")) {
			f.add(place, "is only for "+names+", must be left out with "+usedAdapters(analysis), "")
		}
	}
	other(toolchain, analysis.Toolchain, "the adapters go, node, cargo and python", AdapterGo, AdapterNode, AdapterCargo, AdapterPython)
	other(proxy, analysis.ModuleProxy, "the adapter go", AdapterGo)
	if analysis.ModuleProxy == "" || !f.sound(proxy) {
		return
	}
	where, err := url.Parse(analysis.ModuleProxy)
	switch {
	case err != nil, where.Scheme != "http" && where.Scheme != "https" && where.Scheme != "file",
		where.Scheme == "file" && (where.Host != "" || !pathpkg.IsAbs(where.Path)), where.Scheme != "file" && where.Host == "":
		f.add(proxy, fmt.Sprintf("is %s, must be the http, https or file URL of one module proxy", quote(analysis.ModuleProxy)), "as in https://proxy.golang.org")
	case where.User != nil:
		f.add(proxy, "has a user name in it, must have none", "run a proxy of your own that adds the credentials")
	}
}

func checkFlaky(flaky Flaky, at *path, f *findings) {
	list := at.child("quarantine")
	first := map[string]int{}
	for i, one := range flaky.Quarantine {
		target, until := list.index(i).child("target"), list.index(i).child("until")
		if earlier, twice := first[one.Target]; twice && f.sound(target) {
			f.add(target, fmt.Sprintf("%s is entry %d as well", quote(one.Target), earlier), "remove one")
		}
		first[one.Target] = i
		if _, err := time.Parse(time.DateOnly, one.Until); err != nil && f.sound(until) {
			f.add(until, fmt.Sprintf("is %s, must be a day of the calendar", quote(one.Until)), "")
		}
	}
}

func checkHubs(analysis Analysis, at *path, f *findings) {
	hubs := at.child("hubs")
	if len(analysis.Hubs) > 0 && analysis.Adapter == AdapterWholeRepository && f.sound(hubs, at.child("adapter")) {
		f.add(hubs, "has no effect with the adapter whole-repository, must be empty", "its one target is never a hub")
	}
	const longest = 1000
	first := map[string]int{}
	for i, name := range analysis.Hubs {
		place := hubs.index(i)
		if !f.sound(place) {
			continue
		}
		if earlier, twice := first[name]; twice {
			f.add(place, fmt.Sprintf("%s is entry %d as well", quote(name), earlier), "remove one")
			continue
		}
		first[name] = i
		switch {
		case name == "":
			f.add(place, "is empty, must be the name of a target", "`landfall targets` lists them")
		case len(name) > longest:
			f.add(place, fmt.Sprintf("is %d bytes long, must be at most %d", len(name), longest), "")
		}
	}
}

func checkUncovered(analysis Analysis, at *path, f *findings) {
	ignore := at.child("uncovered").child("ignore")
	if len(analysis.Uncovered.Ignore) > 0 && analysis.Adapter == AdapterWholeRepository && f.sound(ignore, at.child("adapter")) {
		f.add(ignore, "has no effect with the adapter whole-repository, must be empty", "its one target covers every file")
	}
	for i, text := range analysis.Uncovered.Ignore {
		checkPathPattern(text, ignore.index(i), f)
	}
}

func checkBazel(b Bazel, at *path, f *findings) {
	binary := at.child("binary")
	if f.sound(binary) && strings.Contains(b.Binary, "/") && !strings.HasPrefix(b.Binary, "/") {
		// A relative path would be one of the checkout.
		f.add(binary, fmt.Sprintf("is %s, must be a name in steps.environment.path or an absolute path", quote(b.Binary)), "")
	}
	commands := []struct {
		name  string
		words []string
	}{{"build", b.Build}, {"test", b.Test}}
	for _, command := range commands {
		list := at.child(command.name)
		checkCommand(command.words, list, f)
		named := slices.ContainsFunc(command.words, func(word string) bool { return strings.Contains(word, "{label}") })
		if len(command.words) > 0 && f.sound(list) && !named {
			f.add(list, "does not name {label}, must say where the target's label goes", `as in [bazel, test, --, "{label}"]`)
		}
	}
	checkFlags(b.StartupFlags, at.child("startup_flags"), f)
	checkFlags(b.QueryFlags, at.child("query_flags"), f)
}

func checkFlags(words []string, at *path, f *findings) {
	for i, word := range words {
		place := at.index(i)
		if f.sound(place) && (!strings.HasPrefix(word, "-") || word == "--" || strings.ContainsRune(word, 0)) {
			f.add(place, fmt.Sprintf("is %s, must be a flag", quote(word)), "write flag and value as one, as in --output_base=/x")
		}
	}
}

func checkInputs(analysis Analysis, at *path, f *findings) {
	inputs := at.child("inputs")
	if len(analysis.Inputs) > 0 && !analysis.UsesAny(AdapterGo, AdapterBazel, AdapterNode, AdapterCargo, AdapterPython) && f.sound(inputs, at.child("adapter"), at.child("adapters")) {
		f.add(inputs, "is only for the adapters go, bazel, node, cargo and python, must be empty with "+usedAdapters(analysis), "declare them as inputs in landfall.yaml")
	}
	for i, in := range analysis.Inputs {
		for j, text := range in.Folders {
			checkPathPattern(text, inputs.index(i).child("folders").index(j), f)
		}
		for j, text := range in.Files {
			checkPathPattern(text, inputs.index(i).child("files").index(j), f)
		}
	}
}

func checkPathPattern(text string, at *path, f *findings) {
	if !f.sound(at) {
		return
	}
	if _, err := glob.Parse(text); err != nil {
		f.add(at, fmt.Sprintf("is %s, must be a pattern relative to the repository's root, without . and .. in it", quote(text)), "")
	}
}

func checkCommand(words []string, at *path, f *findings) {
	for i, word := range words {
		place := at.index(i)
		if !f.sound(place) {
			continue
		}
		if i == 0 && word == "" {
			f.add(place, "is empty, must be a program", "")
		}
		if strings.ContainsRune(word, 0) {
			f.add(place, "has a NUL byte, which no program accepts", "")
		}
	}
}

func checkEnvironment(e Environment, at *path, f *findings) {
	place := at.child("path")
	if f.sound(place) {
		for folder := range strings.SplitSeq(e.Path, ":") {
			// A relative folder would be one of the worktree: a change could bring its own compiler.
			if !strings.HasPrefix(folder, "/") {
				f.add(place, fmt.Sprintf("has %s in it, must have absolute folders only", quote(folder)),
					"write it like /usr/local/bin:/usr/bin:/bin; variables are not replaced")
				break
			}
		}
	}
	const longest = 32 * 1024
	for _, variable := range e.List() {
		name, value, _ := strings.Cut(variable, "=")
		place := at.child("variables").child(name)
		if !f.given(place) || !f.sound(place) {
			continue
		}
		switch {
		case name == "PATH":
			f.add(place, "PATH cannot be set here", "use environment.path")
		case strings.HasPrefix(name, PlatformPrefix):
			f.add(place, "has a name that begins with "+PlatformPrefix+", as those do that the builder sets", "give it another name")
		case strings.ContainsRune(value, 0):
			f.add(place, "has a NUL byte, which no program accepts", "")
		case len(value) > longest:
			f.add(place, fmt.Sprintf("is %d bytes long, must be at most %d", len(value), longest), "")
		}
	}
}

// checkPlaces refuses two queues on one branch of one repository: each would take
// the other's landings for direct pushes. It needs resolved paths.
func checkPlaces(c *Configuration, f *findings) {
	type place struct{ url, branch string }
	first := map[place]string{}
	for _, name := range c.QueueNames() {
		queue := c.Queues[name]
		at := root.child("queues").child(name)
		repository, known := c.Repositories[queue.Repository]
		if !known || repository.URL == "" || !f.sound(at.child("repository"), at.child("branch")) {
			continue
		}
		here := place{strings.TrimSuffix(repository.URL, "/"), queue.Branch}
		if earlier, twice := first[here]; twice {
			f.add(at.child("branch"), fmt.Sprintf("is %s of the same repository as queue %s", quote(queue.Branch), earlier),
				"two queues cannot land on one branch: remove one, or name another branch")
			continue
		}
		first[here] = name
	}
}

// resolvePaths makes the file's relative paths relative to its folder.
func resolvePaths(c *Configuration, folder string) {
	if !filepath.IsAbs(c.Data) {
		c.Data = filepath.Join(folder, c.Data)
	}
	for _, file := range []*string{&c.Broker.SecretFile, &c.Broker.TLS.CA, &c.Broker.TLS.Certificate, &c.Broker.TLS.Key, &c.Gateway.TLS.Certificate, &c.Gateway.TLS.Key} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(folder, *file)
		}
	}
	for name, repository := range c.Repositories {
		if isPath(repository.URL) && !filepath.IsAbs(repository.URL) {
			repository.URL = filepath.Join(folder, repository.URL)
			c.Repositories[name] = repository
		}
	}
}
