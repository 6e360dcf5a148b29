// Package doctor is `landfall doctor`. It checks everything that a queue rests on, and reports what is wrong, why it matters and
// what to do. The checks are those of `landfall validate`, of `landfall init --check`, of services when they start, and of the
// gateway.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/buildgraph"
	"landfall.build/platform/configuration"
	"landfall.build/platform/identity"
	"landfall.build/platform/journal/rights"
	"landfall.build/platform/outbound"
	"landfall.build/platform/sandbox"
	"landfall.build/services/builder/execution"
	"landfall.build/services/builder/outputs"
	"landfall.build/services/trainer/dataset"
	"landfall.build/tools/adopt"
	"landfall.build/tools/embedded/clickhouse"
)

// Severities of a finding.
const (
	// Error keeps changes from landing, or loses something.
	Error = "error"
	// Warning does not.
	Warning = "warning"
)

// Finding is something that is wrong.
type Finding struct {
	// Code does not change between versions.
	Code     string `json:"code"`
	Severity string `json:"severity"`
	// Queue is empty for what concerns all.
	Queue   string `json:"queue,omitempty"`
	Message string `json:"message"`
	// Why it matters, and what to do.
	Why    string `json:"why"`
	Advice string `json:"advice,omitempty"`
}

// meaning is what a code stands for.
type meaning struct{ severity, why, advice string }

// meanings has every code. Advice is given where what finds it has none.
var meanings = map[string]meaning{
	"configuration_invalid":   {Error, "No service starts with it.", ""},
	"check_failed":            {Error, "What could not be looked at may be wrong.", ""},
	"remote_unreachable":      {Error, "No change is admitted, and nothing lands.", ""},
	"branch_missing":          {Error, "Nothing can land on a branch that is not there.", ""},
	"push_refused":            {Error, "Changes are built and never land.", ""},
	"nothing_proven":          {Error, "A change that nothing verifies is ejected.", ""},
	"tool_missing":            {Error, "Steps that need it cannot run, and their changes are ejected.", ""},
	"tool_broken":             {Error, "Steps that need it fail with every change.", ""},
	"pytest_missing":          {Error, "Steps that run pytest fail with every change.", ""},
	"targets_invalid":         {Error, "Every change waits for every other one.", ""},
	"targets_unknown":         {Error, "Every change waits for every other one.", ""},
	"data_in_working_folder":  {Warning, "Steps may pass or fail by files that are not in the change.", ""},
	"adapter_without_targets": {Warning, "Changes may be verified by more than they need, or by nothing.", ""},
	"target_without_command":  {Warning, "What breaks there is noticed after it has landed.", ""},
	"attributes_not_applied":  {Warning, "Tests may pass in a clone and fail in the queue, or the other way round.", ""},
	"submodules_empty":        {Warning, "Steps that need what a submodule holds fail with every change, or test less than in a clone.", ""},
	"manifest_unread":         {Warning, "What they say is built and tested of their folders proves nothing.", ""},
	"files_uncovered":         {Warning, "A change of one of them waits for every other change, and is verified by every step.", ""},
	"toolchain_unknown":       {Warning, "Results of another version of the tool would count for the same targets.", "Set its toolchain in analysis."},
	"data_unwritable":         {Error, "Services keep their mirrors, logs and snapshots there, and do not start without it.", "Make it a folder that the account that runs Landfall may write, or set data to one."},
	"disk_low":                {Error, "On a full disk steps cannot run, mirrors cannot be fetched, and the embedded log takes no record.", "Make room, or lower the bounds in retention."},
	"secret_readable":         {Warning, "Every user of this machine can read it, and do what Landfall may with it.", "Take the right to read it from others: chmod o= FILE."},
	"issuer_unreachable":      {Warning, "Nobody signs in by it, and jobs with tokens of its keys may be refused; who is signed in goes on.", "Start it, let this machine reach it, or correct its url, ca_file or keys_file in access.issuers."},
	"isolation_off":           {Warning, "The code of any change may do what the service's user may, and can forge results.", "Set steps.isolation to best or required."},
	"isolation_unavailable":   {Warning, "The code of any change may do what the service's user may, and can forge results.", "Give the service user namespaces."},
	"isolation_refused":       {Error, "steps.isolation is required, so the builder does not start.", "Give the service user namespaces, or set steps.isolation to best."},
	"lookups_unwatched":       {Warning, "A test that passes without a file that it looks for counts as passed, and a change of the file can land red.", "Run the builder on Linux 5.9 or newer, on amd64 or arm64, and let it install filters of system calls."},
	"outputs_unshared":        {Warning, "What steps leave stays on the machine that ran them, and others run the same steps again.", "Reach the store of builder.outputs from this machine, and give its account the right to read and to write there."},
	"outputs_refused":         {Error, "The builder does not start.", ""},
	"caches_empty":            {Warning, "Each step computes and fetches again what others have, so builds are slower.", "Put the data directory on a disk that overlayfs can write to, such as one of ext4 or XFS; or give the caches another share, if you trust whoever submits changes."},
	"cache_open":              {Warning, "A change can leave a forged result there, which the step of another one uses.", ""},
	"cache_shared":            {Warning, "A change can leave a forged result there, which the step of another one uses.", "Set its share to mainline."},
	"network_unreached":       {Warning, "Steps that use it fail.", "Name a proxy or registry on another machine, or set steps.network: host, with which steps reach all that listens on this one."},
	"broker_open":             {Warning, "The code of any change can write the log, and so forge results.", "Name the brokers' network in steps.network_deny, or give services accounts: broker.sasl, broker.tls."},
	"broker_unreachable":      {Error, "Nothing is decided or landed without the log.", "Start Kafka, or correct broker.brokers."},
	"topics_unfit":            {Error, "Services do not start on a log that forgets, or whose topics do not fit each other.", ""},
	"log_cut":                 {Error, "Services do not start on a log whose beginning is neither with the brokers nor in the archive.", ""},
	"archive_unreadable":      {Error, "A service that needs old records of the log does not start, or stands still.", "Reach broker.archive.url from this machine, and give its account the right to list and to read there."},
	"rights_missing":          {Warning, "The services that it names cannot work under this account.", "Allow it, if one of them is to run here: landfall access kafka --print has the commands."},
	"rights_needless":         {Warning, "Whoever gets hold of that account can do it, too.", "Take it away with kafka-acls; landfall access kafka --print has what the account needs. A cluster without ACLs allows everything."},
	"dead_letters":            {Warning, "Somebody's land request, or a record of a service, was not understood.", "Read them: landfall dead-letters."},
	"clock_differs":           {Warning, "Times that people see are wrong by that much, and leases of steps lapse early or late.", "Keep the clocks in step by NTP."},
	"history_unreadable":      {Warning, "Changes land all the same; no history is written, and no models are trained.", "Start ClickHouse or correct clickhouse.dsn. The historian makes the tables."},
	"history_not_kept":        {Warning, "Changes land all the same; predictions stay those of a queue without a past.", ""},
	"gateway_unreachable":     {Warning, "What runs was not looked at.", ""},
	"service_missing":         {Error, "The queue stands still at that point.", "Start the service, or look at its log: the operator's guide has each sentence, under \"Is it working\"."},
	"service_troubled":        {Error, "It lives and cannot work.", "Look at its log."},
	"versions_differ":         {Warning, "Services of two versions may compute other target versions for one tree; then changes are ejected.", "Run one version, but for the time of an upgrade."},
	"mainline_unreachable":    {Error, "Nothing lands until it is reached.", ""},
	"change_refused":          {Warning, "The changes whose pushes the remote refuses do not land; others do, if it takes theirs.", "Do what its words ask for, or cancel the change."},
	"landings_paused":         {Error, "The remote refuses every push.", "Do what its words ask for; then wait a minute, or landfall resume."},
	"queue_paused":            {Warning, "Nothing lands while it is paused.", "landfall resume"},
	"mainline_red":            {Warning, "Changes that touch these targets wait until they are green.", "landfall logs --target TARGET prints the output. Land a fix, and move it to the front: landfall priority FIX --front. If what its steps need was away: landfall retry --mainline."},
	"retry_needed":            {Warning, "Nothing more comes of them by itself: whether the mainline fails there too could not be verified.", ""},
	"host_unreachable":        {Error, "Nobody can land at it, and nothing is told there.", ""},
	"host_token_refused":      {Error, "Nobody can land at it, and nothing is told there.", ""},
	"host_token_ends":         {Warning, "Nobody can land at it once the token has ended.", ""},
	"host_repository_missing": {Error, "Nobody can land at it, and nothing is told there.", ""},
	"host_permission_missing": {Error, "Nobody's commands are taken: what somebody may do there is not known.", ""},
	"host_pulls_off":          {Error, "There is nothing to land.", ""},
	"host_merges_unmarked":    {Warning, "What has landed is not shown as merged.", ""},
	"host_method_other":       {Warning, "The history is not as people at the host expect it.", ""},
	"host_queue_other":        {Error, "Nothing lands in an order that holds.", ""},
	"host_branch_open":        {Warning, "What was not tested with the rest may break the mainline.", ""},
	"host_label_missing":      {Warning, "People can ask by comments alone.", ""},
	"host_webhook_missing":    {Warning, "What people ask for is found after hosts.poll, and not at once.", ""},
	"host_webhook_incomplete": {Warning, "What people ask for is found after hosts.poll, and not at once.", ""},
	"host_webhook_silent":     {Warning, "What people ask for is found after hosts.poll, and not at once.", ""},
	"host_webhook_refused":    {Warning, "What people ask for is found after hosts.poll, and not at once.", "Set the same secret at the host and in hosts.servers."},
	"model_unused":            {Warning, "Priors predict in its place, so builds are chosen less well.", "landfall models promote another, or wait for the next training."},
}

// Codes returns the code of everything that can be found, sorted.
func Codes() []string { return slices.Sorted(maps.Keys(meanings)) }

// Options are what to look at.
type Options struct {
	// Config is the configuration file, Server the gateway's address.
	Config, Server string
	Logger         *slog.Logger
	// Room is how much the disk should have.
	Room uint64
	// Wait is how long a broker may take to answer.
	Wait time.Duration
}

// examination is one run.
type examination struct {
	Options
	config   *configuration.Configuration
	findings []Finding
}

// add adds a finding; advice may be "" for that of its code.
func (x *examination) add(code, queue, message, advice string) {
	m := meanings[code]
	if advice == "" {
		advice = m.advice
	}
	x.findings = append(x.findings, Finding{Code: code, Severity: m.severity, Queue: queue, Message: message, Why: m.why, Advice: advice})
}

// Examine looks at everything. What it finds is in the order in which it is best mended.
func Examine(ctx context.Context, o Options) []Finding {
	x := &examination{Options: o}
	if !x.configuration() {
		return x.findings
	}
	x.disk()
	x.queues(ctx)
	x.secretFiles()
	x.issuers(ctx)
	x.isolation(ctx)
	x.outputs(ctx)
	x.log(ctx)
	x.history(ctx)
	x.running(ctx)
	return x.findings
}

func (x *examination) configuration() bool {
	config, err := configuration.Load(x.Config, configuration.Defaults{Workers: runtime.NumCPU()})
	problems, _ := errors.AsType[configuration.Problems](err)
	for _, p := range problems {
		advice := p.Advice
		p.Advice = ""
		x.add("configuration_invalid", "", p.String(), advice)
	}
	if err != nil && len(problems) == 0 {
		x.add("configuration_invalid", "", err.Error(), "landfall init writes one; --config names another.")
	}
	x.config = config
	return err == nil
}

// dataFolder returns the data folder, or the one that it would be made in.
func (x *examination) dataFolder() string {
	folder := x.config.Data
	for {
		_, err := os.Stat(folder)
		if err == nil || !errors.Is(err, os.ErrNotExist) || folder == filepath.Dir(folder) {
			return folder
		}
		folder = filepath.Dir(folder)
	}
}

// disk looks at the data folder and at the room there.
func (x *examination) disk() {
	folder := x.dataFolder()
	file, err := os.CreateTemp(folder, ".doctor-*")
	if err != nil {
		x.add("data_unwritable", "", fmt.Sprintf("The data directory %s cannot be written: %v.", x.config.Data, err), "")
		return
	}
	_ = file.Close()
	_ = os.Remove(file.Name())
	if execution.Full(folder, x.Room) {
		x.add("disk_low", "", fmt.Sprintf("The disk of %s has less than %d MiB left, or room for no more files.", folder, x.Room>>20), "")
	}
}

// queues looks at repositories, the right to push, targets, and the tools on this machine.
func (x *examination) queues(ctx context.Context) {
	lacks, err := adopt.Lacks(ctx, x.Config, x.Logger)
	if err != nil {
		x.add("check_failed", "", "The repositories cannot be looked at: "+err.Error(), "")
	}
	for _, name := range slices.Sorted(maps.Keys(lacks)) {
		for _, l := range lacks[name] {
			x.add(l.Code, name, l.Message, l.Advice)
		}
	}
	for _, name := range x.config.QueueNames() {
		if _, err := buildgraph.WithToolchains(ctx, x.config.Queues[name]); err != nil {
			x.add("toolchain_unknown", name, err.Error(), "")
		}
	}
}

// secretFiles looks at who may read the files with secrets. One that is not on this machine is another's, as of a service of its own.
func (x *examination) secretFiles() {
	for _, file := range x.config.SecretFiles() {
		all := []string{file}
		if strings.Contains(file, configuration.ServicePlaceholder) {
			all = nil
			for _, service := range rights.Accounts() {
				all = append(all, strings.ReplaceAll(file, configuration.ServicePlaceholder, service))
			}
		}
		for _, file := range all {
			if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
				x.add("secret_readable", "", fmt.Sprintf("Everybody can read %s (%v), which has a password, a token or a key.", file, info.Mode().Perm()), "")
			}
		}
	}
}

// issuers asks those who vouch for people and workloads, as the gateway does.
func (x *examination) issuers(ctx context.Context) {
	issuers, err := identity.NewIssuers(x.config.Access, x.Logger)
	if err != nil {
		x.add("issuer_unreachable", "", fmt.Sprintf("The gateway does not start: %v.", err), "")
		return
	}
	for _, p := range issuers.Providers() {
		if err := p.Refresh(ctx); err != nil {
			x.add("issuer_unreachable", "", fmt.Sprintf("The issuer %s (%s) cannot be used: %v.", p.Name, p.Settings.URL, err), "")
		}
	}
}

func (x *examination) isolation(ctx context.Context) {
	isolated := false
	if closed := x.config.ClosedQueues(); len(closed) > 0 {
		if problem := execution.LookupsAvailable(ctx); problem != nil {
			x.add("lookups_unwatched", "", fmt.Sprintf("What the steps of %s look for in their closed workspaces cannot be watched: %v.", strings.Join(closed, ", "), problem), "")
		}
	}
	for _, name := range x.config.QueueNames() {
		steps := x.config.Queues[name].Steps
		if steps.Isolation == configuration.IsolationOff {
			x.add("isolation_off", name, "Its steps are not isolated: steps.isolation is off.", "")
			continue
		}
		if problem := execution.Available(ctx, sandbox.Network(steps.Network)); problem != nil {
			code := "isolation_unavailable"
			if steps.Isolation == configuration.IsolationRequired {
				code = "isolation_refused"
			}
			x.add(code, name, fmt.Sprintf("This system cannot isolate steps with the network %s: %v.", steps.Network, problem), "")
			continue
		}
		isolated = true
		if steps.Network == configuration.NetworkOutbound {
			x.variables(name, steps)
			x.openBroker(ctx, name, steps)
		}
		for _, cache := range steps.SharedCaches() {
			x.add("cache_shared", name, fmt.Sprintf("The share of cache %s is %s.", cache, steps.Caches[cache].Share), "")
		}
	}
	if !isolated {
		return
	}
	if problem := execution.LayersAvailable(ctx, x.dataFolder()); problem != nil {
		x.add("caches_empty", "", fmt.Sprintf("Each step begins with empty caches, since no folder can be laid over another on the disk of %s: %v.", x.config.Data, problem), "")
	}
}

// variables looks for those that name what steps do not reach: proxies and registries on this machine.
func (x *examination) variables(queue string, steps configuration.Steps) {
	filter := outbound.Filter{Deny: steps.DeniedNetworks()}
	for _, variable := range slices.Sorted(maps.Keys(steps.Environment.Variables)) {
		if host := filter.Unreachable(steps.Environment.Variables[variable]); host != "" {
			x.add("network_unreached", queue, fmt.Sprintf("The variable %s of steps names %s, which is this machine or denied, and steps reach the network but not this host.", variable, host), "")
		}
	}
}

// openBroker looks whether steps reach a broker that asks nobody who it is.
func (x *examination) openBroker(ctx context.Context, queue string, steps configuration.Steps) {
	filter := outbound.Filter{Deny: steps.DeniedNetworks()}
	if address := filter.Reached(ctx, x.config.Broker.Brokers); address != "" && x.config.Broker.Open() {
		x.add("broker_open", queue, fmt.Sprintf("Its steps reach the broker %s, which asks nobody who it is.", address), "")
	}
}

// outputs looks at the store of outputs that builders share: it puts a small entry there, and reads it.
func (x *examination) outputs(ctx context.Context) {
	remote, seal, err := outputs.Open(ctx, x.config.Builder.Outputs)
	if err != nil {
		x.add("outputs_refused", "", fmt.Sprintf("The store of outputs cannot be asked: %v.", err), "")
	}
	if err != nil || remote == nil {
		return
	}
	asking, cancel := context.WithTimeout(ctx, min(outputsTimeout, x.config.Builder.Outputs.Timeout))
	defer cancel()
	if err := outputs.Try(asking, remote, seal); err != nil {
		x.add("outputs_unshared", "", fmt.Sprintf("The store of outputs cannot be used: %v.", err), "")
	}
}

// outputsTimeout is how long the store of outputs may take.
const outputsTimeout = 10 * time.Second

// history looks at ClickHouse as the trainer does.
func (x *examination) history(ctx context.Context) {
	if x.config.ClickHouse.DSN == "" {
		if err := clickhouse.Installed(); err != nil && len(x.config.Broker.Brokers) == 0 {
			x.add("history_not_kept", "", "No history is kept: "+err.Error(), "")
		}
		return
	}
	source, err := dataset.Open(x.config.ClickHouse.DSN)
	if err == nil {
		_, err = source.Read(ctx, x.config.QueueNames()[0], eventsv1.ModelKind_MODEL_KIND_SUCCESS, time.Now())
		_ = source.Close()
	}
	if err != nil {
		x.add("history_unreadable", "", withoutSecret(err.Error(), x.config.ClickHouse.DSN), "")
	}
}

// withoutSecret removes the password of a DSN from a text.
func withoutSecret(text, dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		if password, is := u.User.Password(); is && password != "" {
			text = strings.ReplaceAll(text, password, "xxxxx")
		}
	}
	return text
}
