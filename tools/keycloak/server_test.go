package keycloak_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"landfall.build/services/builder/execution"
	"landfall.build/tools/hosttest"
	"landfall.build/tools/proof/kills/fleet"
)

var binary string

func TestMain(m *testing.M) {
	execution.MaybeSupervise()
	if user := os.Getenv("LANDFALL_TEST_BROWSER"); user != "" {
		// The program of BROWSER.
		if _, text, err := newBrowser().signIn(os.Args[len(os.Args)-1], user, "secret-of-"+user); err != nil || !strings.Contains(text, "signed in") {
			fmt.Fprintln(os.Stderr, text, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv("LANDFALL_TEST_KEYCLOAK") == "" {
		os.Exit(m.Run()) // the test says that it is skipped
	}
	dir, err := os.MkdirTemp("", "landfall")
	if err == nil {
		binary, err = hosttest.Build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// browser keeps cookies, goes where it is sent, and fills in the provider's forms.
type browser struct{ *http.Client }

func newBrowser() browser {
	jar, _ := cookiejar.New(nil)
	return browser{&http.Client{Jar: jar, Timeout: time.Minute}}
}

func read(answer *http.Response, err error) (*http.Response, string, error) {
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer, string(text), err
}

var (
	formAction = regexp.MustCompile(`<form[^>]*action="([^"]+)"`)
	hidden     = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// submit sends the form of a page, with its hidden fields and others.
func (b browser) submit(page *http.Response, text string, fields url.Values) (*http.Response, string, error) {
	action := formAction.FindStringSubmatch(text)
	if action == nil {
		return page, text, fmt.Errorf("%v has no form:\n%s", page.Request.URL, text)
	}
	for _, f := range hidden.FindAllStringSubmatch(text, -1) {
		if !fields.Has(f[1]) {
			fields.Set(f[1], html.UnescapeString(f[2]))
		}
	}
	to, err := page.Request.URL.Parse(html.UnescapeString(action[1]))
	if err != nil {
		return page, text, err
	}
	return read(b.PostForm(to.String(), fields))
}

// signIn goes to an address, and signs in where that leads. It returns the page that it ends at.
func (b browser) signIn(address, user, password string) (*http.Response, string, error) {
	page, text, err := read(b.Get(address))
	if err != nil {
		return nil, "", err
	}
	return b.submit(page, text, url.Values{"username": {user}, "password": {password}})
}

// world is a landfall up whose issuer is Keycloak.
type world struct {
	t             *testing.T
	keycloak, url string
	config        string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, keycloak: os.Getenv("LANDFALL_TEST_KEYCLOAK")}
	if w.keycloak == "" {
		t.Skip("LANDFALL_TEST_KEYCLOAK names no Keycloak: make keycloak-test")
	}
	listen, err := fleet.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + listen
	w.administer("PUT", "/clients/"+w.clientID("landfall"), map[string]any{"redirectUris": []string{w.url + "/v1/signin/company/callback"}}, nil)
	dir := t.TempDir()
	bare, work := filepath.Join(dir, "shop.git"), filepath.Join(dir, "work")
	w.run("git", "init", "-q", "--bare", "-b", "main", bare)
	w.run("git", "clone", "-q", bare, work)
	manifest := "targets:\n  - name: a\n    kind: test\n    sources: [\"*.txt\"]\n    steps:\n      - name: check\n        run: [\"true\"]\n"
	w.write(filepath.Join(work, "landfall.yaml"), manifest)
	w.write(filepath.Join(work, "a.txt"), "fine\n")
	w.run("git", "-C", work, "add", "-A")
	w.run("git", "-C", work, "commit", "-q", "-m", "first")
	w.run("git", "-C", work, "push", "-q", "origin", "HEAD:main")
	for _, branch := range []string{"ada", "job"} {
		w.write(filepath.Join(work, branch+".txt"), "fine\n")
		w.run("git", "-C", work, "add", "-A")
		w.run("git", "-C", work, "commit", "-q", "-m", branch)
		w.run("git", "-C", work, "push", "-q", "origin", "HEAD:"+branch)
		w.run("git", "-C", work, "reset", "-q", "--hard", "origin/main")
	}
	secret := filepath.Join(dir, "secret")
	w.write(secret, "secret-of-landfall\n")
	w.config = filepath.Join(dir, "landfall.config.yaml")
	w.write(w.config, fmt.Sprintf(`version: 1
data: %q
gateway: {listen: %q}
repositories: {shop: {url: %q}}
queues: {shop: {repository: shop}}
access:
  mode: required
  issuers:
    company: {url: %q, client_id: landfall, client_secret: {file: %q}, command_client_id: landfall-command, audiences: [landfall-jobs]}
  rules:
    - {role: contributor, issuer: company, any: [{all: {groups: developers}}]}
    - {role: operator, issuer: company, any: [{all: {groups: operators}}]}
    - {role: lander, issuer: company, queues: [shop], any: [{all: {azp: bot}}]}
`, filepath.Join(dir, "data"), listen, bare, w.keycloak+"/realms/company", secret))
	up := exec.Command(binary, "up", "--config", w.config)
	out, err := up.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		up.Process.Signal(syscall.SIGTERM)
		up.Wait()
	})
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "web page: ") {
				ready <- true
			}
			t.Log("landfall:", lines.Text())
		}
		close(ready)
	}()
	select {
	case is := <-ready:
		if !is {
			t.Fatal("landfall up has ended")
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("landfall up did not say where the web page is")
	}
	return w
}

func (w *world) write(file, text string) {
	w.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(argv ...string) string {
	w.t.Helper()
	text, err := w.command(argv...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", argv, err, text)
	}
	return string(text)
}

func (w *world) command(argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@example.com")
	return c
}

// ask sends a request of the API by a browser, with a token if there is one.
func (w *world) ask(b browser, token, method, path, body string) (status int, text string) {
	w.t.Helper()
	r, err := http.NewRequest(method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, text, err := read(b.Do(r))
	if err != nil {
		w.t.Fatal(err)
	}
	return answer.StatusCode, text
}

// token returns an access token of a client's own.
func (w *world) token(client string) string {
	w.t.Helper()
	answer, text, err := read(http.PostForm(w.keycloak+"/realms/company/protocol/openid-connect/token", url.Values{
		"grant_type": {"client_credentials"}, "client_id": {client}, "client_secret": {"secret-of-" + client},
	}))
	var of struct {
		Token string `json:"access_token"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &of)
	}
	if err != nil || of.Token == "" {
		w.t.Fatalf("no token for %s: %v %v %s", client, err, answer, text)
	}
	return of.Token
}

// administer asks the API of Keycloak's administrator about the realm.
func (w *world) administer(method, path string, in, out any) {
	w.t.Helper()
	_, text, err := read(http.PostForm(w.keycloak+"/realms/master/protocol/openid-connect/token", url.Values{
		"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {"secret-of-admin"},
	}))
	var of struct {
		Token string `json:"access_token"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &of)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequest(method, w.keycloak+"/admin/realms/company"+path, strings.NewReader(string(body)))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+of.Token)
	r.Header.Set("Content-Type", "application/json")
	answer, text, err := read(http.DefaultClient.Do(r))
	if err != nil || answer.StatusCode > 299 {
		w.t.Fatalf("%s %s: %v %v %s", method, path, err, answer, text)
	}
	if out != nil {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) clientID(name string) string {
	w.t.Helper()
	var clients []struct{ ID string }
	w.administer("GET", "/clients?clientId="+name, nil, &clients)
	if len(clients) != 1 {
		w.t.Fatalf("there are %d clients %s", len(clients), name)
	}
	return clients[0].ID
}

const queues = "/v1/queues/shop"

func TestPeopleSignInAtKeycloak(t *testing.T) {
	w := newWorld(t)
	nobody := newBrowser()
	if status, text := w.ask(nobody, "", "GET", queues, ""); status != http.StatusUnauthorized {
		t.Errorf("nobody is answered %d %s", status, text)
	}
	if answer, text, err := nobody.signIn(w.url+"/v1/signin/company/start?to=/v1/whoami", "ada", "secret-of-bo"); err != nil || !strings.HasPrefix(answer.Request.URL.String(), w.keycloak) {
		t.Errorf("with a wrong password: %v %v %s", answer, err, text)
	}
	people := map[string]browser{}
	for user, want := range map[string]string{"ada": `"contributor"`, "bo": `"operator"`, "eve": "Eve"} {
		b := newBrowser()
		answer, text, err := b.signIn(w.url+"/v1/signin/company/start?to=/v1/whoami", user, "secret-of-"+user)
		if err != nil || answer.Request.URL.Path != "/v1/whoami" || !strings.Contains(text, want) {
			t.Fatalf("%s is at %v: %v %s", user, answer, err, text)
		}
		people[user] = b
	}
	land := `{"change":"ada","entries":[{"ref":"ada"}],"author":"Ada <ada@example.com>"}`
	for _, c := range []struct {
		who, method, path, body string
		want                    int
	}{
		{"eve", "GET", queues, "", http.StatusForbidden},
		{"eve", "POST", queues + "/changes", land, http.StatusForbidden},
		{"ada", "POST", queues + "/changes", land, http.StatusCreated},
		{"ada", "POST", queues + "/pause", "{}", http.StatusForbidden},
		{"eve", "POST", queues + "/changes/ada/cancel", "{}", http.StatusForbidden},
		{"bo", "POST", queues + "/pause", "{}", http.StatusOK},
		{"bo", "POST", queues + "/resume", "{}", http.StatusOK},
	} {
		if status, text := w.ask(people[c.who], "", c.method, c.path, c.body); status != c.want {
			t.Errorf("%s: %s %s: %d %s, want %d", c.who, c.method, c.path, status, text, c.want)
		}
	}
	if status, text := w.ask(people["ada"], "", "POST", "/v1/signout", `{"everywhere":true}`); status != http.StatusOK {
		t.Errorf("sign out: %d %s", status, text)
	}
	if status, _ := w.ask(people["ada"], "", "GET", queues, ""); status != http.StatusUnauthorized {
		t.Errorf("signed out, Ada is answered %d", status)
	}
}

func TestTheCommandSignsInAtKeycloak(t *testing.T) {
	w := newWorld(t)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("LANDFALL_SERVER", w.url)
	if text, err := w.command(binary, "queue", "--queue", "shop").CombinedOutput(); err == nil || !strings.Contains(string(text), "landfall login") {
		t.Errorf("not signed in: %v\n%s", err, text)
	}
	t.Setenv("BROWSER", os.Args[0])
	login := w.command(binary, "login")
	login.Env = append(login.Env, "LANDFALL_TEST_BROWSER=ada")
	if text, err := login.CombinedOutput(); err != nil || !strings.Contains(string(text), "Ada Byron") {
		t.Fatalf("login: %v\n%s", err, text)
	}
	for _, want := range []string{"Ada Byron", "contributor"} {
		if text := w.run(binary, "whoami"); !strings.Contains(text, want) {
			t.Errorf("whoami does not say %s:\n%s", want, text)
		}
	}
	w.run(binary, "queue", "--queue", "shop")
	w.run(binary, "logout")
	if text, err := w.command(binary, "queue", "--queue", "shop").CombinedOutput(); err == nil {
		t.Errorf("signed out:\n%s", text)
	}

	// By a code that is entered in a browser elsewhere.
	device := w.command(binary, "login", "--device")
	out, err := device.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	device.Stdout = nil
	if err := device.Start(); err != nil {
		t.Fatal(err)
	}
	said, address := "", regexp.MustCompile(`http\S+user_code=\S+`)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said += lines.Text() + "\n"
		at := address.FindString(lines.Text())
		if at == "" {
			continue
		}
		b := newBrowser()
		page, text, err := b.signIn(strings.TrimRight(at, "."), "bo", "secret-of-bo")
		if err == nil {
			_, text, err = b.submit(page, text, url.Values{"accept": {"Yes"}})
		}
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			device.Process.Kill()
		}
	}
	if err := device.Wait(); err != nil {
		t.Fatalf("login --device: %v\n%s", err, said)
	}
	if text := w.run(binary, "whoami"); !strings.Contains(text, "Bo Ek") || !strings.Contains(text, "operator") {
		t.Errorf("whoami:\n%s", text)
	}
}

func TestJobsComeWithTokensOfKeycloak(t *testing.T) {
	w := newWorld(t)
	none := newBrowser()
	land := `{"change":"job","entries":[{"ref":"job"}]}`
	if status, text := w.ask(none, w.token("stranger"), "POST", queues+"/changes", land); status != http.StatusUnauthorized {
		t.Errorf("a token for another program is answered %d %s", status, text)
	}
	good := w.token("bot")
	parts := strings.Split(good, ".")
	if status, text := w.ask(none, parts[0]+"."+parts[1]+"."+strings.Repeat("A", len(parts[2])), "POST", queues+"/changes", land); status != http.StatusUnauthorized {
		t.Errorf("a forged token is answered %d %s", status, text)
	}
	if status, text := w.ask(none, good, "POST", queues+"/changes", land); status != http.StatusCreated {
		t.Errorf("the job is answered %d %s", status, text)
	}
	if status, text := w.ask(none, good, "POST", queues+"/pause", "{}"); status != http.StatusForbidden {
		t.Errorf("the job pauses: %d %s", status, text)
	}

	// A newer key, with which Keycloak signs from now on.
	w.administer("POST", "/components", map[string]any{
		"name": "newer", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
		"config": map[string][]string{"priority": {"1000"}, "enabled": {"true"}, "active": {"true"}, "algorithm": {"RS256"}, "keySize": {"2048"}},
	}, nil)
	newer := w.token("bot")
	if strings.Split(newer, ".")[0] == parts[0] {
		t.Fatal("the key is the same")
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Second) {
		status, text := w.ask(none, newer, "GET", queues, "")
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a token of the newer key is answered %d %s", status, text)
		}
	}
	if status, text := w.ask(none, good, "GET", queues, ""); status != http.StatusOK {
		t.Errorf("a token of the older key is answered %d %s", status, text)
	}
}
