package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"landfall.build/events"
	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/access"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal"
	"landfall.build/platform/journal/reading"
	"landfall.build/services/gateway/api"
	"landfall.build/tools/login"
)

// Variables of the environment that say by what a command proves who asks.
const (
	tokenVariable     = "LANDFALL_TOKEN"
	tokenFileVariable = "LANDFALL_TOKEN_FILE"
)

// ownToken returns the token of the environment, "" for none.
func ownToken() (string, error) {
	if token := strings.TrimSpace(os.Getenv(tokenVariable)); token != "" {
		return checkToken(token, tokenVariable)
	}
	path := os.Getenv(tokenFileVariable)
	if path == "" {
		return "", nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", tokenFileVariable, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("%s: %w", tokenFileVariable, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("others can read %s (%s): chmod 600 it, and have a new token made if they may have", path, tokenFileVariable)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxCredential+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", tokenFileVariable, err)
	}
	return checkToken(strings.TrimSpace(string(text)), tokenFileVariable)
}

// Prove has the client prove who asks: by the token of the environment, else by that of whoever has signed in at the server.
func (c *Client) Prove() error {
	own, err := ownToken()
	if err != nil {
		return err
	}
	if own != "" {
		c.token, c.exposed = func(context.Context) (string, error) { return own, nil }, !isSafe(c.server)
		return nil
	}
	if kept, err := login.Open(); err == nil { // who has no folder for credentials has none
		c.token = func(ctx context.Context) (string, error) { return kept.Token(ctx, c.server) }
	}
	return nil
}

// maxCredential bounds a token: those of issuers have claims in them.
const maxCredential = 16 << 10

// checkToken refuses what cannot be a token. The text is not repeated.
func checkToken(token, from string) (string, error) {
	if token == "" || len(token) > maxCredential || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s has no token in it: one word, such as landfall_…", from)
	}
	return token, nil
}

// isSafe reports whether nobody reads what is sent to a server on the way.
func isSafe(server string) bool {
	at, err := url.Parse(server)
	return err == nil && (at.Scheme == "https" || configuration.IsLoopback(at.Host))
}

// WhoAmI returns who the gateway takes the client for and, of a queue that is named, what it may do to it; with a change, to that one.
func (c *Client) WhoAmI(ctx context.Context, queue, change string) (api.WhoAmI, error) {
	path := "/v1/whoami"
	if queue != "" {
		path += "?" + url.Values{"queue": {queue}, "change": {change}}.Encode()
	}
	var out api.WhoAmI
	err := c.call(ctx, http.MethodGet, path, nil, &out)
	return out, err
}

func whoAmICommand() *cobra.Command {
	var change string
	cmd, _ := command("whoami", "Who the gateway takes you for, and your role in each queue",
		`Print who the gateway takes you for, and your role in each queue. With --queue also what you may do there and why not,
with --change to that change: its author may do more to it.`, none, func(ctx context.Context, s *session, _ []string) error {
			if change != "" {
				if err := s.chooseQueue(ctx); err != nil {
					return err
				}
			}
			who, err := s.client.WhoAmI(ctx, s.queue, change)
			if err != nil {
				return err
			}
			if s.asJSON {
				return s.print(who)
			}
			name := Plain(who.Name)
			switch {
			case who.Mode == configuration.AccessOpen && who.Issuer == access.IssuerOpen:
				fmt.Fprintf(s.out, "%s, by name: access is open, and every name is believed\n", name)
			case who.Token != "":
				fmt.Fprintf(s.out, "token %s (%s)%s\n", who.Token, name, expiry(who.Expires))
			default:
				if name == Plain(who.Subject) { // as of most jobs
					fmt.Fprintf(s.out, "%s at %s\n", name, Plain(who.Issuer))
					break
				}
				fmt.Fprintf(s.out, "%s: %s at %s\n", name, Plain(who.Subject), Plain(who.Issuer))
			}
			if len(who.Verbs) > 0 {
				fmt.Fprintf(s.out, "  for %s alone\n", strings.Join(who.Verbs, ", "))
			}
			for _, queue := range sortedKeys(who.Roles) {
				fmt.Fprintf(s.out, "  %-20s %s\n", Plain(queue), who.Roles[queue])
			}
			if len(who.Roles) == 0 {
				fmt.Fprintln(s.out, "  no role in any queue: access.rules in the configuration give them")
			}
			for _, p := range who.May {
				may := "yes"
				switch {
				case p.Own:
					may = "your own changes alone"
				case !p.Allowed:
					may = "no: " + Plain(p.Message)
				}
				fmt.Fprintf(s.out, "  may %-16s %s\n", p.Verb, may)
			}
			return nil
		})
	cmd.Flags().StringVar(&change, "change", "", "the change that you would do something to")
	return cmd
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func expiry(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", until " + at.UTC().Format("2006-01-02 15:04 UTC")
}

// OpenLog opens the log that flags name, and returns what closes it.
type OpenLog func(ctx context.Context, logger *slog.Logger) (journal.Log, func(), error)

// TokenCommand returns `landfall token`. logFlags adds the flags that say where the log is, and returns what opens it.
func TokenCommand(logFlags func(*cobra.Command) OpenLog) *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Make, list and revoke the tokens of programs", Long: `Make, list and revoke the tokens by which programs prove who they are. The commands ask the gateway, as an admin. With --direct they write the
log themselves: beside the data directory of a landfall up, or with the account of the broker that the configuration has for operator. So the
first token is made.

A token is landfall_<id>_<secret>. It is shown once. Commands take it from LANDFALL_TOKEN, or from the file that LANDFALL_TOKEN_FILE names,
which must be yours alone (chmod 600).`}
	c.AddCommand(tokenCreateCommand(logFlags), tokenListCommand(logFlags), tokenRevokeCommand(logFlags))
	return c
}

// direct is how a command writes the log itself.
type direct struct {
	on   bool
	open OpenLog
}

func addDirect(cmd *cobra.Command, logFlags func(*cobra.Command) OpenLog) *direct {
	d := &direct{}
	cmd.Flags().BoolVar(&d.on, "direct", false, "write the log itself, without the gateway")
	d.open = logFlags(cmd)
	return d
}

// tokens opens the log and reads the tokens.
func (d *direct) tokens(ctx context.Context) (log journal.Log, tokens *access.Tokens, done func(), err error) {
	log, done, err = d.open(ctx, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err != nil {
		return nil, nil, nil, err
	}
	tokens = &access.Tokens{}
	err = reading.Each(ctx, log, events.TopicAccess, events.PartitionOf("", log.Partitions()), func(e *journal.Entry) bool {
		tokens.Apply(e.Message)
		return true
	})
	if err != nil {
		done()
		return nil, nil, nil, err
	}
	return log, tokens, done, nil
}

func (d *direct) write(ctx context.Context, log journal.Log, m proto.Message) error {
	_, err := log.Append(ctx, events.TopicAccess, events.PartitionOf("", log.Partitions()), events.Envelope{
		ID: events.DeriveID(log.ID(), "access", rand.Text()), Source: events.ServiceGateway, Instance: "command", Time: time.Now(), Term: -1, Message: m,
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", events.TopicAccess, err)
	}
	return nil
}

// Operator returns who runs a command that writes the log itself, for its records: the broker lets in who has the account.
func Operator(command string) *eventsv1.Actor {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	name = access.Clean(name, access.MaxNameBytes)
	return &eventsv1.Actor{Issuer: access.IssuerLog, Subject: name, Name: name, Role: access.Operator.String(), Client: command}
}

// Person returns the default of --who: $LANDFALL_USER, or the name of the system's user.
func Person() string {
	if name := os.Getenv("LANDFALL_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "somebody"
}

func tokenCreateCommand(logFlags func(*cobra.Command) OpenLog) *cobra.Command {
	var body api.TokenBody
	var file string
	var d *direct
	cmd, _ := command("create NAME", "Make a token, and print it once",
		`Make a token for a role, or for some verbs, in queues.

  landfall token create ci --verbs read,land --queues shop --ttl 2160h --output ~/.config/landfall/ci-token
  landfall token create first-admin --role admin --queues '*' --ttl 24h --direct

Verbs: `+strings.Join(verbNames(), ", ")+".", Exactly("NAME"), func(ctx context.Context, s *session, args []string) error {
			body.Name = args[0]
			var reply api.TokenReply
			var err error
			if d.on {
				reply, err = d.create(ctx, body)
			} else {
				err = s.client.call(ctx, http.MethodPost, "/v1/tokens", body, &reply)
			}
			if err != nil {
				return err
			}
			if file != "" {
				if err := writeSecret(file, reply.Secret); err != nil {
					return fmt.Errorf("the token %s was made, and could not be kept: %w; revoke it", reply.Token.ID, err)
				}
				reply.Secret = ""
			}
			if s.asJSON {
				return s.print(reply)
			}
			fmt.Fprintf(s.progress, "token %s (%s): %s in %s%s. It is shown this once.\n", reply.Token.ID, Plain(reply.Token.Name), scopeOf(reply.Token), strings.Join(reply.Token.Queues, ", "), expiry(reply.Token.Expires))
			if file != "" {
				fmt.Fprintf(s.out, "%s\n", file)
				return nil
			}
			fmt.Fprintln(s.out, reply.Secret)
			return nil
		})
	cmd.Flags().StringVar(&body.Role, "role", "", "viewer, contributor, lander, operator or admin (default: the least one that may do --verbs)")
	cmd.Flags().StringSliceVar(&body.Verbs, "verbs", nil, "what it is for, of what the role allows (default: all)")
	cmd.Flags().StringSliceVar(&body.Queues, "queues", nil, "queues that it is for; * is every one")
	cmd.Flags().StringVar(&body.TTL, "ttl", "2160h", "how long it is good; empty: for ever")
	cmd.Flags().StringVar(&file, "output", "", "write it to this new file, for its owner alone, in place of printing it")
	d = addDirect(cmd, logFlags)
	return cmd
}

func verbNames() (names []string) {
	for _, v := range access.Verbs() {
		names = append(names, string(v))
	}
	return names
}

func scopeOf(t api.Token) string {
	if len(t.Verbs) > 0 {
		return strings.Join(t.Verbs, ", ")
	}
	return t.Role
}

// writeSecret writes a secret to a new file.
func writeSecret(path, secret string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, secret+"\n")
	return errors.Join(err, file.Close())
}

func (d *direct) create(ctx context.Context, body api.TokenBody) (reply api.TokenReply, err error) {
	g, ttl, err := api.ParseGrant(body)
	if err != nil {
		return reply, err
	}
	now := time.Now()
	var expires time.Time
	if ttl > 0 {
		expires = now.Add(ttl)
	}
	id, hash, text := access.NewToken()
	m, err := access.Created(id, hash, body.Name, g, expires, now, Operator("landfall token --direct"))
	if err != nil {
		return reply, err
	}
	log, tokens, done, err := d.tokens(ctx)
	if err != nil {
		return reply, err
	}
	defer done()
	tokens.Apply(m)
	made, is := tokens.Get(id)
	if !is {
		return reply, fmt.Errorf("there are %d tokens, the most that there may be; revoke some", access.MaxTokens)
	}
	return api.TokenReply{Token: api.ShowToken(made), Secret: text}, d.write(ctx, log, m)
}

func tokenListCommand(logFlags func(*cobra.Command) OpenLog) *cobra.Command {
	var d *direct
	cmd, session := command("list", "List tokens: what each is for, until when, and whether it is used", "List the tokens of the queues in which you are admin, oldest first.", none,
		func(ctx context.Context, s *session, _ []string) error {
			list := api.TokenList{Tokens: []api.Token{}}
			if d.on {
				_, tokens, done, err := d.tokens(ctx)
				if err != nil {
					return err
				}
				defer done()
				for _, t := range tokens.List() {
					made := true
					if s.at != "" {
						t, made = t.At(s.client.at)
					}
					if made {
						list.Tokens = append(list.Tokens, api.ShowToken(t))
					}
				}
			} else if err := s.client.call(ctx, http.MethodGet, s.client.then("/v1/tokens", url.Values{}), nil, &list); err != nil {
				return err
			}
			if s.asJSON {
				return s.print(list)
			}
			s.writeMoment()
			w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "ID\tNAME\tFOR\tQUEUES\tMADE\tBY\tLAST USED\tUNTIL")
			for _, t := range list.Tokens {
				until := "for ever"
				switch {
				case !t.Revoked.IsZero():
					until = "revoked " + day(t.Revoked)
				case !t.Expires.IsZero() && s.now().After(t.Expires):
					until = "expired " + day(t.Expires)
				case !t.Expires.IsZero():
					until = day(t.Expires)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", Plain(t.ID), Plain(t.Name), Plain(scopeOf(t)), Plain(strings.Join(t.Queues, ",")), day(t.Created), Plain(t.CreatedBy), day(t.LastUse), until)
			}
			return w.Flush()
		})
	session.addAt(cmd)
	d = addDirect(cmd, logFlags)
	return cmd
}

func day(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format(time.DateOnly)
}

func tokenRevokeCommand(logFlags func(*cobra.Command) OpenLog) *cobra.Command {
	var body api.RevokeBody
	var d *direct
	cmd, _ := command("revoke ID", "End a token, for ever", "End a token, for ever. Give its id, never the token itself.", Exactly("ID"), func(ctx context.Context, s *session, args []string) error {
		if access.IsToken(args[0]) {
			return errors.New("give the id of the token: what is between landfall_ and the next _")
		}
		if d.on {
			if err := d.revoke(ctx, args[0], body.Why); err != nil {
				return err
			}
			fmt.Fprintf(s.progress, "%s is revoked\n", args[0])
			return nil
		}
		var t api.Token
		if err := s.client.call(ctx, http.MethodPost, "/v1/tokens/"+url.PathEscape(args[0])+"/revoke", body, &t); err != nil {
			return err
		}
		if s.asJSON {
			return s.print(t)
		}
		fmt.Fprintf(s.out, "%s (%s) is revoked\n", t.ID, Plain(t.Name))
		return nil
	})
	cmd.Flags().StringVarP(&body.Why, "why", "m", "", "reason, kept")
	d = addDirect(cmd, logFlags)
	return cmd
}

func (d *direct) revoke(ctx context.Context, id, why string) error {
	log, tokens, done, err := d.tokens(ctx)
	if err != nil {
		return err
	}
	defer done()
	if _, known := tokens.Get(id); !known {
		return fmt.Errorf("there is no token %q; `landfall token list --direct` lists them", access.Clean(id, 40))
	}
	return d.write(ctx, log, &eventsv1.TokenRevoked{Token: id, Why: access.Clean(why, 1000), StampUs: time.Now().UnixMicro(), Actor: Operator("landfall token --direct")})
}
