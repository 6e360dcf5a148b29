package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"landfall.build/platform/configuration"
	"landfall.build/platform/secretplace"
	"landfall.build/services/hosts"
	"landfall.build/tools/pipeline"
)

const (
	// tryPatience is how long a webhook may take that the host was asked for.
	tryPatience = 10 * time.Second
	// hostTimeout bounds one answer.
	hostTimeout = 10 * time.Second
	maxArrivals = 64 << 10
)

// HostsCommand returns `landfall hosts doctor`.
func HostsCommand(config string) *cobra.Command {
	var o Options
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the code hosts, and say what is missing there and what to do",
		Long: `Look at each repository of hosts.servers: the token and its permissions, the branch and who may push to it past the queue, the label,
whether what landed can be marked as merged, the webhook, and whether webhooks arrive at the service. It changes nothing; where the
host can be asked for a webhook (Gitea: if the webhook sends pushes too), it has it send one.

Exit codes: 0 no error (there may be warnings), 1 an error.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SilenceUsage = true
			findings := ExamineHosts(cmd.Context(), o)
			unwell := slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == Error })
			if err := show(cmd.OutOrStdout(), findings, !unwell, asJSON); err != nil {
				return err
			}
			if unwell {
				return Unwell{}
			}
			return cmd.Context().Err()
		},
	}
	c.Flags().StringVar(&o.Config, "config", config, "configuration file")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON value")
	return c
}

// ExamineHosts looks at the code hosts.
func ExamineHosts(ctx context.Context, o Options) []Finding {
	x := &examination{Options: o}
	if !x.configuration() {
		return x.findings
	}
	if len(x.config.Hosts.Servers) == 0 {
		x.add("configuration_invalid", "", "there is no code host", "Give hosts.servers in the configuration.")
	}
	for _, name := range x.config.Hosts.ServerNames() {
		h := x.config.Hosts.Servers[name]
		repositories, err := pipeline.Repositories(x.config, h)
		if err != nil {
			x.add("configuration_invalid", "", err.Error(), "")
			continue
		}
		// Webhooks of one host arrive at one address, so they are tried once.
		tried := map[string]bool{}
		for _, queue := range slices.Sorted(maps.Keys(h.Queues)) {
			found := repositories[queue].Examine(ctx, "/v1/hosts/"+name)
			for _, p := range found.Problems {
				x.add(p.Code, queue, p.Message, p.Advice)
			}
			if found.Webhook != "" && !tried[found.Webhook] {
				tried[found.Webhook] = true
				x.arrivals(ctx, name, h, queue, found)
			}
		}
	}
	return x.findings
}

// arrivals looks at whether webhooks arrive at the service, by one that the host is asked for where that can be.
func (x *examination) arrivals(ctx context.Context, name string, h configuration.Host, queue string, found hosts.Examined) {
	before, err := readArrivals(ctx, name, h, found.Webhook)
	if err != nil {
		x.add("host_webhook_silent", queue, fmt.Sprintf("the service is not reached at the webhook's address: %v", err), "Start landfall hosts; the host must reach it at that address, and so must this machine for this look.")
		return
	}
	if found.Try == nil {
		switch {
		case before.Taken.IsZero() && before.Refused.IsZero():
			x.add("host_webhook_silent", queue, "no webhook has come since the service was started", "Comment on a pull request and look again; at Gitea put the event push into the webhook, so that one can be tried here. The host's list of recent deliveries has its errors.")
		case before.Refused.After(before.Taken):
			x.add("host_webhook_refused", queue, "the last webhook was refused: "+before.Reason, "")
		}
		return
	}
	if err := found.Try(ctx); err != nil {
		x.add("check_failed", queue, fmt.Sprintf("the host does not send a webhook to try: %v", err), "")
		return
	}
	for until := time.Now().Add(tryPatience); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
		now, err := readArrivals(ctx, name, h, found.Webhook)
		if err != nil {
			continue
		}
		if now.Taken.After(before.Taken) {
			return
		}
		if now.Refused.After(before.Refused) {
			x.add("host_webhook_refused", queue, "a webhook that the host was asked for was refused: "+now.Reason, "")
			return
		}
	}
	x.add("host_webhook_silent", queue, fmt.Sprintf("a webhook that the host was asked for has not come within %v", tryPatience), "Look at the host's list of recent deliveries: it may not reach the address, or may not be allowed to (Gitea: [webhook] ALLOWED_HOST_LIST; GitLab: Outbound requests, under Admin, Settings, Network).")
}

// readArrivals asks the service when webhooks came last.
func readArrivals(ctx context.Context, name string, h configuration.Host, webhook string) (a hosts.Arrivals, err error) {
	secret, err := secretplace.Read(ctx, h.Secret, pipeline.MaxHostSecret)
	if err != nil {
		return a, fmt.Errorf("the secret of its webhooks cannot be read: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(webhook, "/"), nil)
	if err != nil {
		return a, err
	}
	request.Header.Set(hosts.ArrivalsHeader, hosts.ArrivalsProof(name, secret))
	// A redirect would take the proof elsewhere.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return a, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusUnauthorized {
		return a, errors.New("the service has another secret than this configuration")
	}
	if answer.StatusCode != http.StatusOK {
		return a, fmt.Errorf("it answers %d", answer.StatusCode)
	}
	return a, json.NewDecoder(io.LimitReader(answer.Body, maxArrivals)).Decode(&a)
}
