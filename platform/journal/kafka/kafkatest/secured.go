package kafkatest

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"landfall.build/platform/certificate/certificatetest"
)

// SecuredVariable names the folder of a Kafka with TLS, SCRAM and ACLs that tools/kafka/run with-secured has started.
const SecuredVariable = "LANDFALL_TEST_SECURED_KAFKA"

// Secured is a cluster with TLS, SCRAM and ACLs: that of the variable, else a small one of the test's own.
type Secured struct {
	t *testing.T
	// Brokers are its addresses, CA a file with the certificate that signed theirs.
	Brokers []string
	CA      string
	// Mutual are the addresses at which a client shows a certificate in the place of an account, ClientCertificate and ClientKey one of
	// CN=landfall-operator. They are empty for the small one.
	Mutual                       []string
	ClientCertificate, ClientKey string
	// Admin is the account that may do everything, by PLAIN, AdminPassword a file with its password.
	Admin, AdminPassword string
	secrets              map[string]string
}

// NewSecured returns a cluster without topics of Landfall, accounts and ACLs.
func NewSecured(t *testing.T) *Secured {
	t.Helper()
	s := &Secured{t: t, Admin: "landfall-admin", secrets: map[string]string{}}
	if dir := os.Getenv(SecuredVariable); dir != "" {
		s.CA, s.AdminPassword = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "admin-password")
		s.ClientCertificate, s.ClientKey = filepath.Join(dir, "operator.pem"), filepath.Join(dir, "operator.key")
		s.Brokers, s.Mutual = ownBrokers(t, SecuredVariable, s.text(filepath.Join(dir, "addresses"))), strings.Split(s.text(filepath.Join(dir, "mutual-addresses")), ",")
		s.empty()
		return s
	}
	a := certificatetest.NewAuthority(t)
	s.CA, s.AdminPassword = a.File, filepath.Join(t.TempDir(), "admin-password")
	password := rand.Text()
	if err := os.WriteFile(s.AdminPassword, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.TLS(a.Server("127.0.0.1", time.Hour)), kfake.EnableSASL(), kfake.EnableACLs(),
		kfake.Superuser("PLAIN", s.Admin, password))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s.Brokers = c.ListenAddrs()
	return s
}

func (s *Secured) text(file string) string {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// common returns the options of every client.
func (s *Secured) common() []kgo.Opt {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(s.text(s.CA)))
	return []kgo.Opt{kgo.SeedBrokers(s.Brokers...), kgo.DialTLSConfig(&tls.Config{RootCAs: pool}), kgo.MetadataMinAge(100 * time.Millisecond)}
}

// As returns the options of a client under an account that SetPassword has made.
func (s *Secured) As(user string) []kgo.Opt {
	return append(s.common(), kgo.SASL(scram.Auth{User: user, Pass: s.secrets[user]}.AsSha512Mechanism()))
}

// AsAdmin returns a client of the admin, which the test ends.
func (s *Secured) AsAdmin() *kgo.Client {
	s.t.Helper()
	client, err := kgo.NewClient(append(s.common(), kgo.SASL(plain.Auth{User: s.Admin, Pass: s.text(s.AdminPassword)}.AsMechanism()))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// SetPassword makes an account, or gives it another password.
func (s *Secured) SetPassword(user, password string) {
	s.t.Helper()
	r, err := kadm.NewClient(s.AsAdmin()).AlterUserSCRAMs(s.t.Context(), nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password}})
	if err == nil {
		err = r.Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.secrets[user] = password
}

// empty removes the topics and ACLs that a test before has left.
func (s *Secured) empty() {
	s.t.Helper()
	admin := s.AsAdmin()
	if err := emptyBy(s.t.Context(), admin); err != nil {
		s.t.Fatal(err)
	}
	all := kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).Operations(kadm.OpAny).Allow().AllowHosts().Deny().DenyHosts()
	if _, err := kadm.NewClient(admin).DeleteACLs(s.t.Context(), all); err != nil {
		s.t.Fatal(err)
	}
}
