package configuration

import (
	"fmt"
	"strings"
)

// BrokerTLS says how brokers are connected to.
type BrokerTLS struct {
	// Enabled is on or off.
	Enabled string `yaml:"enabled" enum:"on,off"`
	// CA is a file with the certificates of the authorities that may sign a broker's certificate. Empty: those of the system.
	CA string `yaml:"ca" maximum:"4096" pattern:"line"`
	// Certificate and Key are the files of the client's own certificate. Empty: it has none.
	Certificate string `yaml:"certificate" maximum:"4096" pattern:"line"`
	Key         string `yaml:"key" maximum:"4096" pattern:"line"`
	// ServerName is the name in the brokers' certificates. Empty: the host of each broker's address.
	ServerName string `yaml:"server_name" maximum:"253" pattern:"line"`
}

// BrokerSASL is the account by which brokers know a client.
type BrokerSASL struct {
	Mechanism string `yaml:"mechanism" enum:"none,PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER,AWS_MSK_IAM"`
	// User is the name of the account, of the mechanisms with a password.
	User string `yaml:"user" maximum:"255" pattern:"line"`
	// Secret says where the password is, the token, or the credentials of AWS.
	Secret SecretPlace `yaml:"secret"`
}

// Values of BrokerSASL.Mechanism.
const (
	SASLNone     = "none"
	SASLPlain    = "PLAIN"
	SASLScram256 = "SCRAM-SHA-256"
	SASLScram512 = "SCRAM-SHA-512"
	SASLOAuth    = "OAUTHBEARER"
	SASLAWS      = "AWS_MSK_IAM"
)

// ServicePlaceholder stands for the name of the service in Certificate, Key, User, and the file and command of Secret, so that
// each service has an account of its own under one configuration.
const ServicePlaceholder = "{service}"

// For returns the settings of a service.
func (b Broker) For(service string) Broker {
	for _, text := range []*string{&b.TLS.Certificate, &b.TLS.Key, &b.SASL.User, &b.SASL.Secret.File} {
		*text = strings.ReplaceAll(*text, ServicePlaceholder, service)
	}
	command := make([]string, len(b.SASL.Secret.Command))
	for i, word := range b.SASL.Secret.Command {
		command[i] = strings.ReplaceAll(word, ServicePlaceholder, service)
	}
	b.SASL.Secret.Command = command
	return b
}

// PerService reports whether services have accounts of their own by their names.
func (b Broker) PerService() bool {
	texts := append([]string{b.TLS.Certificate, b.SASL.User, b.SASL.Secret.File}, b.SASL.Secret.Command...)
	return strings.Contains(strings.Join(texts, "\n"), ServicePlaceholder)
}

// Secured reports whether clients need TLS or an account.
func (b Broker) Secured() bool { return b.TLS.Enabled == On || b.SASL.Used() }

// Open reports whether clients do not authenticate: whoever reaches the brokers may do what services do.
func (b Broker) Open() bool { return !b.SASL.Used() && b.TLS.Certificate == "" && b.SecretFile == "" }

// Used reports whether clients log in; a configuration that was not read from a file has no mechanism at all.
func (s BrokerSASL) Used() bool { return s.Mechanism != SASLNone && s.Mechanism != "" }

// given reports whether the place says anything.
func (s SecretPlace) given() bool {
	return s.File != "" || s.Environment != "" || len(s.Command) > 0
}

func checkBrokerAccess(b Broker, at *path, f *findings) {
	checkBrokerTLS(b.TLS, at.child("tls"), f)
	checkBrokerSASL(b.SASL, at.child("sasl"), f)
	if b.SecretFile != "" && b.Secured() {
		f.add(at.child("secret_file"), "is for an embedded broker, which has neither TLS nor other accounts", "remove it, or tls and sasl")
	}
	for place, text := range map[*path]string{
		at.child("tls").child("certificate"): b.TLS.Certificate, at.child("tls").child("key"): b.TLS.Key, at.child("sasl").child("user"): b.SASL.User,
	} {
		if strings.ContainsAny(strings.ReplaceAll(text, ServicePlaceholder, ""), "{}") {
			f.add(place, fmt.Sprintf("is %s, with a brace that is not of %s", quote(text), ServicePlaceholder), "only "+ServicePlaceholder+" is replaced")
		}
	}
}

func checkBrokerTLS(t BrokerTLS, at *path, f *findings) {
	for _, of := range []struct{ name, text string }{{"ca", t.CA}, {"certificate", t.Certificate}, {"key", t.Key}, {"server_name", t.ServerName}} {
		if of.text != "" && t.Enabled != On {
			f.add(at.child(of.name), "is not used, as tls.enabled is off", "set tls.enabled: on, or remove it")
		}
	}
	if (t.Certificate == "") != (t.Key == "") {
		f.add(at, "has one of certificate and key, must have both or neither", "both are files in PEM")
	}
	if t.ServerName != "" && !isHostName(t.ServerName) {
		f.add(at.child("server_name"), fmt.Sprintf("is %s, must be the name of a host", quote(t.ServerName)), "as in kafka.example.com")
	}
}

func checkBrokerSASL(s BrokerSASL, at *path, f *findings) {
	if !f.sound(at.child("mechanism"), at.child("user"), at.child("secret"), at.child("secret").child("file"), at.child("secret").child("environment"), at.child("secret").child("command")) {
		return
	}
	named, secret := false, false
	switch s.Mechanism {
	case SASLPlain, SASLScram256, SASLScram512:
		named, secret = true, true
	case SASLOAuth:
		secret = true
	case SASLAWS:
		secret = s.Secret.given() // else the variables of AWS
	case SASLNone:
		if s.Secret.given() {
			f.add(at.child("secret"), "is not used, as sasl.mechanism is none", "name a mechanism, or remove it")
		}
	}
	if secret {
		checkSecretPlace(s.Secret, at.child("secret"), f)
	}
	switch {
	case named && s.User == "":
		f.add(at.child("user"), "is missing for "+s.Mechanism, "the name of the account")
	case !named && s.User != "":
		f.add(at.child("user"), "is not used by the mechanism "+s.Mechanism, "remove it")
	}
}
