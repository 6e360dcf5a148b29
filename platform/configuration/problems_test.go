package configuration

import (
	"fmt"
	"strings"
	"testing"
)

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	text := `version: 2
repositories:
  Shop: {url: shop.git}
  tools:
    polls: 2s
queues:
  main:
    repository: tool
    brnch: main
    strategy: sqash
    workers: 0
    timeout: 5m
    speculation:
      threshold: 1.5
      bypass_threshold: high
    steps:
      timeout: 90
      log_limit: 64MB
      environment:
        variables: {GOMAXPROCS: [2]}
    retries: {failed: -1, failed: 3}
    analysis:
      whole_repository_steps:
        - {name: test, run: go test ./...}
    quux: 1
broker: []
`
	want := `f.yaml:1: version: is 2, must be 1
f.yaml:3: repositories.Shop: is named "Shop", must be 1 to 63 of a-z, 0-9, '.', '_', '-', the first a letter or digit
f.yaml:4: repositories.tools.url: is missing; add it
f.yaml:5: repositories.tools.polls: is not a known field; did you mean poll?
f.yaml:8: queues.main.repository: is "tool", which is not under repositories; did you mean tools?
f.yaml:9: queues.main.brnch: is not a known field; did you mean branch?
f.yaml:10: queues.main.strategy: is "sqash", must be squash, rebase or merge; did you mean squash?
f.yaml:11: queues.main.workers: is 0, must be at least 1, at most 4096
f.yaml:12: queues.main.timeout: is not a known field; did you mean steps.timeout?
f.yaml:14: queues.main.speculation.threshold: is 1.5, must be at least 0, at most 1
f.yaml:15: queues.main.speculation.bypass_threshold: is the text "high", must be a number
f.yaml:17: queues.main.steps.timeout: is the number 90, must be a duration; write a number with a unit, as in 500ms, 90s, 5m, 1h30m
f.yaml:18: queues.main.steps.log_limit: "64MB" is not a size; write a whole number with a unit, as in 512B, 16KiB, 64MiB, 2GiB
f.yaml:20: queues.main.steps.environment.variables.GOMAXPROCS: is a list, must be a text, a number, true or false
f.yaml:21: queues.main.retries.failed: is given twice, first on line 21; remove one
f.yaml:24: queues.main.analysis.whole_repository_steps[0].run: is the text "go test ./...", must be a list; write it as ["go", "test", "./..."]
f.yaml:25: queues.main.quux: is not a known field; known are repository, branch, strategy, shadow, pool, weight, workers, speculation, steps, retries, flaky, priors, analysis, limits, admission, base, quotas
f.yaml:26: broker: is a list, must be a mapping; write 'name: value' lines below it, indented`
	if got := problemsOf(t, text).Error(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestReportIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString(smallest)
	for i := range 1000 {
		fmt.Fprintf(&text, "unknown%d: 1\n", i)
	}
	problems := problemsOf(t, text.String())
	if len(problems) != maxProblems+1 || problems[maxProblems].Message != "900 more problems are not listed" {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
	long := problemsOf(t, smallest+"data: \""+strings.Repeat("é\\n", 10_000)+"\"\n")
	if len(long.Error()) > 500 || strings.Contains(long.Error(), "\n") {
		t.Errorf("a long text is printed whole, or not on one line: %s", long)
	}
}

// Each file of the table has one defect, which is reported at its line and alone.
func TestEveryRuleRefuses(t *testing.T) {
	queue := func(settings string) string {
		return "version: 1\nrepositories: {shop: {url: shop.git}, same: {url: ./shop.git}}\nqueues:\n  main:\n    repository: shop\n    " +
			strings.ReplaceAll(settings, "\n", "\n    ") + "\n"
	}
	repository := func(url string) string {
		return fmt.Sprintf("version: 1\nqueues: {main: {repository: shop}}\nrepositories:\n  shop:\n    url: %q\n", url)
	}
	const steps = "queues.main.analysis.whole_repository_steps"
	cases := []struct {
		name, text, path string
		line             int
		message          string
	}{
		{"url is an option", repository("--upload-pack=x"), "repositories.shop.url", 5, "must not begin with '-'"},
		{"url with a tilde", repository("~/shop.git"), "repositories.shop.url", 5, "'~' is not replaced"},
		{"url of a remote helper", repository("ext::sh -c x"), "repositories.shop.url", 5, "remote helpers are not supported"},
		{"url with a password", repository("https://me:hunter2@example.com/x"), "repositories.shop.url", 5, "password"},
		{"url of another scheme", repository("ftp://example.com/x"), "repositories.shop.url", 5, "must be file, git, http, https, ssh"},
		{"url without a host", repository("https:///x"), "repositories.shop.url", 5, "without a host"},
		{"url that cannot be read", repository("https://example.com:port/x"), "repositories.shop.url", 5, "not a URL that can be read"},
		{"repository is not there", strings.Replace(smallest, "repository: shop", "repository: shopp", 1), "queues.main.repository", 5, `is "shopp", which is not under repositories`},
		{"branch with refs", queue("branch: refs/heads/main"), "queues.main.branch", 6, "the name alone"},
		{"branch with a space", queue("branch: a b"), "queues.main.branch", 6, "git refuses"},
		{"two queues on one branch", queue("branch: main") + "  other: {repository: same}\n", "queues.other.branch", 7, "same repository as queue main"},
		{"abort threshold not lower", queue("speculation:\n  threshold: 0.1\n  abort_threshold: 0.1"), "queues.main.speculation.abort_threshold", 8, "lower than threshold, 0.1"},
		{"logs of failures kept shorter", "version: 1\nrepositories: {same: {url: /r}}\nqueues: {main: {repository: same}}\nretention: {logs: {age: 48h, failed_age: 24h}}", "retention.logs.failed_age", 4, "at least age, 48h"},
		{"fewer candidates than workers", queue("workers: 9\nspeculation:\n  candidates: 8"), "queues.main.speculation.candidates", 8, "at least workers, 9"},
		{"tail longer than the log", queue("steps:\n  log_limit: 1KiB\n  output_tail: 2KiB"), "queues.main.steps.output_tail", 8, "at most log_limit, 1KiB"},
		{"conflict above success", queue("priors:\n  success: 0.2\n  conflict: 0.3"), "queues.main.priors.conflict", 8, "at most success, 0.2"},
		{"whole repository without steps", queue("analysis:\n  adapter: whole-repository"), steps, 6, "must have a step"},
		{"two steps of one name", queue("analysis:\n  whole_repository_steps:\n  - {name: a, run: [x]}\n  - {name: a, run: [y]}"), steps + "[1].name", 9, "step 0 as well"},
		{"inputs of another adapter", queue("analysis:\n  inputs:\n  - {files: [a]}"), "queues.main.analysis.inputs", 7, "for the adapters go, bazel, node, cargo and python"},
		{"a Bazel of the repository's own", queue("analysis: {bazel: {binary: tools/bazel}}"), "queues.main.analysis.bazel.binary", 6, "must be a name in steps.environment.path"},
		{"a step of Bazel about nothing", queue("analysis: {bazel: {test: [bazel, test, //...]}}"), "queues.main.analysis.bazel.test", 6, "does not name {label}"},
		{"a flag with its value apart", queue("analysis: {bazel: {query_flags: [--repo_env, A=b]}}"), "queues.main.analysis.bazel.query_flags[1]", 6, "must be a flag"},
		{"an input outside", queue("analysis:\n  adapter: go\n  inputs:\n  - {files: [../a]}"), "queues.main.analysis.inputs[0].files[0]", 9, "relative to the repository's root"},
		{"an input that is no pattern", queue("analysis:\n  adapter: go\n  inputs:\n  - {files: [a], folders: ['[a/b]']}"), "queues.main.analysis.inputs[0].folders[0]", 9, "must be a pattern"},
		{"a toolchain of another adapter", queue("analysis:\n  toolchain: go1.26"), "queues.main.analysis.toolchain", 7, "for the adapters go, node, cargo and python"},
		{"a module proxy of another adapter", queue("analysis:\n  module_proxy: https://x"), "queues.main.analysis.module_proxy", 7, "for the adapter go"},
		{"a list of module proxies", queue("analysis:\n  adapter: go\n  module_proxy: https://x,direct:y"), "queues.main.analysis.module_proxy", 8, "one module proxy"},
		{"a module proxy that is a folder", queue("analysis:\n  adapter: go\n  module_proxy: /srv/proxy"), "queues.main.analysis.module_proxy", 8, "file URL"},
		{"a module proxy with a password", queue("analysis:\n  adapter: go\n  module_proxy: https://a:b@x"), "queues.main.analysis.module_proxy", 8, "has a user"},
		{"a quota of nothing", queue("quotas: {author: 0}"), "queues.main.quotas.author", 6, "is 0, must be at least 1"},
		{"a named author's quota of nothing", queue("quotas:\n  authors: [{who: [ada], steps: 0}]"), "queues.main.quotas.authors[0].steps", 7, "is 0, must be at least 1"},
		{"a quota for nobody", queue("quotas:\n  authors: [{who: [], steps: 1}]"), "queues.main.quotas.authors[0].who", 7, "must be at least 1"},
		{"a quota for a name that is empty", queue("quotas:\n  authors: [{who: [' '], steps: 1}]"), "queues.main.quotas.authors[0].who[0]", 7, "is empty"},
		{"a quota for a name with an address", queue("quotas:\n  authors: [{who: ['Ada <ada@example.com>'], steps: 1}]"), "queues.main.quotas.authors[0].who[0]", 7, "must be the address of an author"},
		{"a quota for a name that is too long", queue("quotas:\n  teams: [{name: a, who: [" + strings.Repeat("x", 201) + "], steps: 1}]"), "queues.main.quotas.teams[0].who[0]", 7, "at most 200"},
		{"a team that is there twice", queue("quotas:\n  teams: [{name: a, who: [b], steps: 1}, {name: a, who: [c], steps: 2}]"), "queues.main.quotas.teams[1].name", 7, "entry 0 as well"},
		{"a team without a number of steps", queue("quotas:\n  teams: [{name: a, who: [b]}]"), "queues.main.quotas.teams[0].steps", 7, "is missing"},
		{"hubs of one target", queue("analysis:\n  adapter: whole-repository\n  whole_repository_steps: [{name: a, run: [b]}]\n  hubs: [a]"), "queues.main.analysis.hubs", 9, "no effect"},
		{"a hub without a name", queue("analysis:\n  hubs: ['']"), "queues.main.analysis.hubs[0]", 7, "is empty"},
		{"a hub that is there twice", queue("analysis:\n  hubs: [a, b, a]"), "queues.main.analysis.hubs[2]", 7, "entry 0 as well"},
		{"a hub that is too long", queue("analysis:\n  hubs: [" + strings.Repeat("x", 1001) + "]"), "queues.main.analysis.hubs[0]", 7, "at most 1000"},
		{"ignored files of one target", queue("analysis:\n  adapter: whole-repository\n  whole_repository_steps: [{name: a, run: [b]}]\n  uncovered: {ignore: [a]}"), "queues.main.analysis.uncovered.ignore", 9, "no effect"},
		{"an ignored file outside", queue("analysis:\n  uncovered: {ignore: [a, /docs]}"), "queues.main.analysis.uncovered.ignore[1]", 7, "relative to the repository's root"},
		{"a policy that is none", queue("analysis:\n  uncovered: {policy: whole-repository}"), "queues.main.analysis.uncovered.policy", 7, "whole_repository"},
		{"an input without files", queue("analysis:\n  adapter: go\n  inputs:\n  - {folders: [a]}"), "queues.main.analysis.inputs[0].files", 9, ""},
		{"a step outside of the tree", queue("analysis:\n  whole_repository_steps:\n  - {name: a, run: [x], dir: ../b}"), steps + "[0].dir", 8, "must be a folder of the tree"},
		{"a step's folder with a point", queue("analysis:\n  whole_repository_steps:\n  - {name: a, run: [x], dir: ./b}"), steps + "[0].dir", 8, "must be a folder of the tree"},
		{"program is empty", queue("analysis:\n  whole_repository_steps:\n  - {name: a, run: ['', x]}"), steps + "[0].run[0]", 8, "must be a program"},
		{"zero byte in a word", queue("analysis:\n  whole_repository_steps:\n  - {name: a, run: [x, \"a\\0b\"]}"), steps + "[0].run[1]", 8, "NUL byte"},
		{"relative folder in PATH", queue("steps:\n  environment:\n    path: /bin:bin"), "queues.main.steps.environment.path", 8, "absolute folders only"},
		{"empty folder in PATH", queue("steps:\n  environment:\n    path: /bin::/usr/bin"), "queues.main.steps.environment.path", 8, "absolute folders only"},
		{"PATH as a variable", queue("steps:\n  environment:\n    variables: {PATH: /bin}"), "queues.main.steps.environment.variables.PATH", 8, "cannot be set here"},
		{"a cache without a variable", queue("steps: {caches: {mine: {max_size: 1GiB}}}"), "queues.main.steps.caches.mine", 6, "must name the one that its path is in"},
		{"a cache in PATH", queue("steps: {caches: {mine: {variable: PATH}}}"), "queues.main.steps.caches.mine.variable", 6, "which steps have anyway"},
		{"a cache in no variable", queue("steps: {caches: {mine: {variable: A-B}}}"), "queues.main.steps.caches.mine.variable", 6, "letters, digits and '_'"},
		{"two caches in one variable", queue("steps: {caches: {a: {variable: GOCACHE}, go-build: {max_size: 1GiB}}}"), "queues.main.steps.caches.go-build.variable", 6, "is the variable of cache a as well"},
		{"a secret from nowhere", queue("steps: {secrets: {T: {for: mainline}}}"), "queues.main.steps.secrets.T", 6, "says in 0 ways where it is"},
		{"a secret from two places", queue("steps: {secrets: {T: {file: /x, environment: Y}}}"), "queues.main.steps.secrets.T", 6, "says in 2 ways where it is"},
		{"a secret written down", queue("steps: {secrets: {T: {file: hunter2}}}"), "queues.main.steps.secrets.T.file", 6, "must be an absolute path"},
		{"a secret in a variable of the queue's", queue("steps: {secrets: {T: {file: /x}}, environment: {variables: {T_FILE: x}}}"), "queues.main.steps.secrets.T", 6, "is in the variable T_FILE, which environment.variables sets"},
		{"a secret named as what steps have", queue("steps: {secrets: {HOME: {file: /x}}}"), "queues.main.steps.secrets.HOME", 6, "variable that steps have anyway"},
		{"a secret that nobody knows", queue("analysis: {whole_repository_steps: [{name: a, run: [b], secrets: [T]}]}"), "queues.main.analysis.whole_repository_steps[0].secrets[0]", 6, `is "T", which is not under steps.secrets`},
		{"an image without a digest", queue("analysis: {whole_repository_steps: [{name: a, run: [b], image: 'go:1.26'}]}"), "queues.main.analysis.whole_repository_steps[0].image", 6, "must be an image with its digest"},
		{"a relative container runtime", smallest + "builder: {container_runtime: podman}\n", "builder.container_runtime", 6, "must be an absolute path"},
		{"an exclusive name", queue("analysis: {whole_repository_steps: [{name: a, run: [b], exclusive: [DB]}]}"), "queues.main.analysis.whole_repository_steps[0].exclusive[0]", 6, "must be 1 to 63 of a-z"},
		{"nothing of a resource", queue("analysis: {whole_repository_steps: [{name: a, run: [b], resources: {gpus: 0}}]}"), "queues.main.analysis.whole_repository_steps[0].resources.gpus", 6, "is 0, must be at least 1"},
		{"a cache that nobody knows", queue("analysis: {whole_repository_steps: [{name: a, run: [b], caches: [go-biuld]}]}"), "queues.main.analysis.whole_repository_steps[0].caches[0]", 6, `is "go-biuld", which is not under steps.caches`},
		{"a variable of the platform's", queue("steps:\n  environment:\n    variables: {LANDFALL_QUEUE: x}"), "queues.main.steps.environment.variables.LANDFALL_QUEUE", 8, "as those do that the builder sets"},
		{"zero byte in a variable", queue("steps:\n  environment:\n    variables: {A: \"a\\0\"}"), "queues.main.steps.environment.variables.A", 8, "NUL byte"},
		{"variable too long", queue("steps:\n  environment:\n    variables: {A: " + strings.Repeat("x", 40_000) + "}"), "queues.main.steps.environment.variables.A", 8, "40000 bytes long"},
		{"variable without a value", queue("steps:\n  environment:\n    variables: {A: ~}"), "queues.main.steps.environment.variables.A", 8, "has no value, must be a text, a number, true or false"},
		{"name of a variable", queue("steps:\n  environment:\n    variables: {A-B: x}"), "queues.main.steps.environment.variables.A-B", 8, "letters, digits and '_'"},
		{"name of a queue", strings.Replace(smallest, "main:", "../main:", 1), `queues."../main"`, 5, "must be 1 to 63"},
		{"name of a repository", strings.Replace(smallest, "  shop:", "  -shop: {url: a}\n  shop:", 1), "repositories.-shop", 3, "must be 1 to 63"},
		{"broker without a port", smallest + "broker: {brokers: [kafka]}\n", "broker.brokers[0]", 6, "must be host:port"},
		{"broker without a host", smallest + "broker: {brokers: [':9092']}\n", "broker.brokers[0]", 6, "without a host"},
		{"broker with a URL", smallest + "broker: {brokers: ['[http://x]:9092']}\n", "broker.brokers[0]", 6, "no host has"},
		{"broker with port 0", smallest + "broker: {brokers: ['a:0']}\n", "broker.brokers[0]", 6, "port must be 1 to 65535"},
		{"broker twice", smallest + "broker:\n  brokers:\n  - a:1\n  - b:1\n  - a:1\n", "broker.brokers[2]", 10, "entry 0 as well"},
		{"listen on a large port", smallest + "gateway: {listen: ':65536'}\n", "gateway.listen", 6, "port must be 0 to 65535"},
		{"a history that is not ClickHouse's", smallest + "clickhouse: {dsn: 'https://u:p@host/landfall'}\n", "clickhouse.dsn", 6, "is not a DSN of ClickHouse's native protocol"},
		{"a history without a database", smallest + "clickhouse: {dsn: 'clickhouse://host:9000'}\n", "clickhouse.dsn", 6, "with a database"},
		{"a gateway's address with a path to nowhere", smallest + "gateway: {url: 'landfall.example.com'}\n", "gateway.url", 6, "must be the address of a site"},
		{"a webhook without a secret", smallest + "webhooks: {bot: {url: 'https://bot.example.com'}}\n", "webhooks.bot.secret", 6, "must say in one"},
		{"a host without a secret", smallest + "hosts: {servers: {forge: {kind: gitea, url: 'https://git.example.com', token: {file: /x}, queues: {main: acme/shop}}}}\n", "hosts.servers.forge.secret", 6, "must say in one"},
		{"an App at a host that has none", smallest + "hosts: {servers: {forge: {kind: gitea, app: x, url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme/shop}}}}\n", "hosts.servers.forge.app", 6, "has no Apps"},
		{"required checks at a host that has its own", smallest + "hosts: {servers: {forge: {kind: gitea, checks: [ci], url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme/shop}}}}\n", "hosts.servers.forge.checks", 6, "say themselves which checks"},
		{"a required check without a name", smallest + "hosts: {servers: {forge: {kind: gitlab, checks: [ci, ''], url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme/shop}}}}\n", "hosts.servers.forge.checks[1]", 6, "must be a name"},
		{"a group in a group at a host that has none", smallest + "hosts: {servers: {forge: {kind: github, url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme/team/shop}}}}\n", "hosts.servers.forge.queues.main", 6, "is not the name of a repository"},
		{"a group without a name", smallest + "hosts: {servers: {forge: {kind: gitlab, url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme//shop}}}}\n", "hosts.servers.forge.queues.main", 6, "is not the name of a repository"},
		{"a host nowhere", smallest + "hosts: {servers: {forge: {kind: gitea, url: 'git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: acme/shop}}}}\n", "hosts.servers.forge.url", 6, "is not the address of a server"},
		{"a host of another queue", smallest + "hosts: {servers: {forge: {kind: gitea, url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {nobody: acme/shop}}}}\n", "hosts.servers.forge.queues.nobody", 6, "not under queues"},
		{"a host of no repository", smallest + "hosts: {servers: {forge: {kind: gitea, url: 'https://git.example.com', token: {file: /x}, secret: {file: /x}, queues: {main: ../shop}}}}\n", "hosts.servers.forge.queues.main", 6, "is not the name of a repository"},
		{"a webhook to nowhere", smallest + "webhooks: {bot: {url: 'bot.example.com', secret: {file: /x}}}\n", "webhooks.bot.url", 6, "is not the address of an endpoint"},
		{"a webhook of another state", smallest + "webhooks: {bot: {url: 'https://bot.example.com', secret: {file: /x}, states: [merged]}}\n", "webhooks.bot.states[0]", 6, "no state of an outcome"},
		{"a webhook of another queue", smallest + "webhooks: {bot: {url: 'https://bot.example.com', secret: {file: /x}, queues: [nobody]}}\n", "webhooks.bot.queues[0]", 6, "not under queues"},
		{"an issuer over plain HTTP", smallest + "access: {issuers: {a: {url: 'http://id.example.com', client_id: x}}}\n", "access.issuers.a.url", 6, "must be the https address of an issuer"},
		{"an issuer with a query", smallest + "access: {issuers: {a: {url: 'https://id.example.com?x', client_id: x}}}\n", "access.issuers.a.url", 6, "must be the https address of an issuer"},
		{"an issuer twice", smallest + "access: {issuers: {a: {url: 'https://id.example.com', client_id: x}, b: {url: 'https://id.example.com', audiences: [y]}}}\n", "access.issuers.b.url", 6, "is that of a as well"},
		{"an issuer whose tokens are for anybody", smallest + "access: {issuers: {a: {url: 'https://id.example.com'}}}\n", "access.issuers.a", 6, "neither a client nor audiences"},
		{"a client's secret written down", smallest + "access: {issuers: {a: {url: 'https://id.example.com', client_id: x, client_secret: {file: hunter2}}}}\n", "access.issuers.a.client_secret.file", 6, "must be an absolute path"},
		{"a client's secret as a text", smallest + "access: {issuers: {a: {url: 'https://id.example.com', client_id: x, client_secret: {environment: 'hunter2 '}}}}\n", "access.issuers.a.client_secret.environment", 6, "the first not a digit"},
		{"scopes without openid", smallest + "access: {issuers: {a: {url: 'https://id.example.com', client_id: x, scopes: [email]}}}\n", "access.issuers.a.scopes", 6, "lacks openid"},
		{"a relative file of keys", smallest + "access: {issuers: {a: {url: 'https://id.example.com', audiences: [x], keys_file: jwks}}}\n", "access.issuers.a.keys_file", 6, "must be an absolute path"},
		{"sessions that end before they are idle", smallest + "access: {sessions: {idle: 2h, lifetime: 1h}}\n", "access.sessions.lifetime", 6, "must be at least idle"},
		{"outcomes in another form", smallest + "outcomes: {format: avro}\n", "outcomes.format", 6, "json"},
		{"a gateway's name with a port", smallest + "gateway: {hosts: ['a.example', 'b.example:80']}\n", "gateway.hosts[1]", 6, "must be the name of a host"},
		{"a certificate without its key", smallest + "gateway: {url: 'https://a.example', tls: {certificate: a.crt}}\n", "gateway.tls.key", 6, "is not given"},
		{"a key without its certificate", smallest + "gateway: {tls: {key: a.key}}\n", "gateway.tls.certificate", 6, "is not given"},
		{"a certificate and an address in the clear", smallest + "gateway: {url: 'http://a.example', tls: {certificate: a.crt, key: a.key}}\n", "gateway.url", 6, "must begin with https://"},
		{"a certificate of no name", smallest + "gateway: {tls: {certificate: a.crt, key: a.key}}\n", "gateway.url", 6, "must begin with https://"},
		{"a proxy that is no network", smallest + "gateway: {proxies: ['10.0.0.0/8', 10.0.0.1]}\n", "gateway.proxies[1]", 6, "must be a network"},
		{"listen without a port", smallest + "gateway: {listen: localhost}\n", "gateway.listen", 6, "must be host:port"},
		{"no queues", "version: 1\nrepositories: {a: {url: a}}\nqueues:\n", "queues", 3, "is 0 entries, must be at least 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			problems := problemsOf(t, c.text)
			if len(problems) != 1 {
				t.Errorf("%d problems, want one:\n%v", len(problems), problems)
			}
			if p := problems[0]; p.Path != c.path || p.Line != c.line || !strings.Contains(p.Message, c.message) {
				t.Errorf("got line %d, %s: %s; want line %d, %s: %s", p.Line, p.Path, p.Message, c.line, c.path, c.message)
			}
			if strings.Contains(problems.Error(), "hunter2") {
				t.Error("the report prints a password")
			}
		})
	}
}

func TestDeepIndentationIsRefusedInBoundedWork(t *testing.T) {
	var text strings.Builder
	for depth := range 1_400 {
		text.WriteString(strings.Repeat(" ", depth) + "a:\n")
	}
	if got := problemsOf(t, text.String()).Error(); !strings.Contains(got, "nested more than 32 deep") {
		t.Errorf("got\n%.500s", got)
	}
}

func TestParseRefusesWhatIsNotOnePlainDocument(t *testing.T) {
	cases := []struct{ name, text, message string }{
		{"nothing", "", "version: is missing"},
		{"comments only", "# a\n# b\n", "queues: is missing"},
		{"a list", "- a\n", "must be a mapping"},
		{"a text", "hello\n", "must be a mapping"},
		{"a second document", smallest + "---\nversion: 1\n", "f.yaml:7: has a second YAML document"},
		{"broken YAML", "version: 1\nqueues: [\n", "is not YAML"},
		{"bad indentation", "version: 1\n  queues: 1\n", "is not YAML"},
		{"an anchor", "version: &v 1\n", "f.yaml:1: \"&\": anchors, aliases and merge keys are not supported"},
		{"an alias", "version: 1\ndata: *v\n", "f.yaml:2: \"*\": anchors"},
		{"a merge key", "version: 1\n<<: {a: 1}\n", "f.yaml:2: \"<<\": anchors"},
		{"a tag", "version: !!int 1\n", "tags and directives are not supported"},
		{"a directive", "%YAML 1.2\n---\nversion: 1\n", "tags and directives are not supported"},
		{"a key twice", "version: 1\nversion: 1\n", "f.yaml:2: version: is given twice, first on line 1"},
		{"a number for a key", smallest + "12: x\n", "has the number 12 as a name"},
		{"not UTF-8", "version: 1\ndata: \xff\n", "f.yaml:2: is not UTF-8 text"},
		{"a zero byte", "version: 1\n\x00", "f.yaml:2: is not UTF-8 text"},
		{"infinity", smallest + "broker: {partitions: .inf}\n", "is the number .inf, must be a whole number"},
		{"a fraction for a whole number", smallest + "broker: {partitions: 4.0}\n", "must be a whole number"},
		{"no value", smallest + "data:\n", "f.yaml:6: data: has no value"},
		{"a mapping for a number", smallest + "broker: {partitions: {a: 1}}\n", "is a mapping, must be a whole number"},
		{"truth for a text", smallest + "data: true\n", "is true, must be a text"},
		{"too large", smallest + strings.Repeat("# filler\n", MaxFileSize/9), "larger than 1MiB"},
		{"too many tokens", strings.Repeat("a: b\n", maxTokens/2), "YAML tokens"},
		{"lists in lists, flow", "a: " + strings.Repeat("[", 20_000), "nested more than 32 deep"},
		{"mappings in mappings, flow", strings.Repeat("{a: ", 8_000), "nested more than 32 deep"},
		{"lists in lists, block", strings.Repeat("- ", 20_000), "nested more than 32 deep"},
		{"a billion laughs", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchors, aliases"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := problemsOf(t, c.text).Error(); !strings.Contains(got, c.message) {
				t.Errorf("got\n%.500s\nwant %s", got, c.message)
			}
		})
	}
}
