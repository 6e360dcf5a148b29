package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	eventsv1 "landfall.build/events/v1"
	"landfall.build/platform/configuration"
	"landfall.build/platform/journal/memory"
)

// withSecrets has the queue give secrets: two files and a variable of the builder's environment.
func withSecrets(s *site, inFile string) {
	s.t.Helper()
	file := filepath.Join(s.dir, "token")
	if err := os.WriteFile(file, []byte(inFile), 0o600); err != nil {
		s.t.Fatal(err)
	}
	queue := s.config.Queues[queueName]
	queue.Steps.Secrets = map[string]configuration.Secret{
		"TOKEN":    {File: file, For: configuration.ForMainline, As: configuration.AsFile},
		"KEY":      {Environment: "BUILDERS_KEY", For: configuration.ForMainline, As: configuration.AsVariable},
		"APPROVED": {File: file, For: configuration.ForApproved, As: configuration.AsFile},
	}
	s.config.Queues[queueName] = queue
}

const usesSecrets = "targets: [{name: t, sources: [\"**\"], steps: [{name: other, run: [sh, other.sh]}, {name: deploy, run: [sh, deploy.sh], secrets: [TOKEN, KEY]}]}]\n"

func TestAStepHasTheSecretsThatItNamesAndNobodySeesThem(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.t.Setenv("BUILDERS_KEY", "key-of-the-builder")
	withSecrets(s, "token-in-a-file\n")
	base := s.commit("", map[string]string{
		"landfall.yaml": usesSecrets,
		"other.sh":      "echo other: $TOKEN_FILE$KEY$BUILDERS_KEY\n",
		"deploy.sh":     "cat $TOKEN_FILE; echo key $KEY; test \"$KEY $(cat $TOKEN_FILE)\" = 'key-of-the-builder token-in-a-file' && echo right\n",
	})
	in := s.start("a")
	s.decide(s.scheduled("b1", base, asked("//:t")...))
	f := s.finished("//:t")
	if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED || string(f.OutputTail) != "other:\n[secret TOKEN]\nkey [secret KEY]\nright\n" {
		t.Fatalf("%s %q, output %q", f.Outcome, f.Reason, f.OutputTail)
	}
	log, err := os.ReadFile(filepath.Join(LogDir(in.dir), filepath.FromSlash(f.Log)))
	if err != nil || string(log) != string(f.OutputTail) {
		t.Errorf("log %q, %v", log, err)
	}
	in.stop()
	err = filepath.WalkDir(in.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), "token-in-a-file") && filepath.Base(path) != "deploy.sh" {
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAStepThatTheMainlineDefinesOtherwiseIsNotRunWithASecret(t *testing.T) {
	for name, edited := range map[string]string{
		"arguments":   strings.Replace(usesSecrets, "deploy.sh]", "deploy.sh, --print]", 1),
		"folder":      strings.Replace(usesSecrets, "run: [sh, deploy.sh]", "run: [sh, deploy.sh], dir: .git", 1),
		"environment": "environment: {SHELL_OPTIONS: -x}\n" + usesSecrets,
		"other step":  strings.Replace(usesSecrets, "other.sh", "deploy.sh", 1),
		"new target":  strings.Replace(usesSecrets, "name: t", "name: u", 1),
		"unknown":     strings.Replace(usesSecrets, "TOKEN", "ATOKEN", 1),
		"approved":    strings.Replace(usesSecrets, "TOKEN", "APPROVED", 1),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, memory.Options{})
			s.policy.InfrastructureRetries = 0
			s.t.Setenv("BUILDERS_KEY", "key-of-the-builder")
			withSecrets(s, "token-in-a-file\n")
			files := map[string]string{"landfall.yaml": usesSecrets, "other.sh": "true\n", "deploy.sh": "echo x >>$OUTSIDE/ran\n"}
			base := s.commit("", files)
			head := s.commit(base, map[string]string{"landfall.yaml": edited})
			s.start("a")
			target := "//:t"
			if name == "new target" {
				target = "//:u"
			}
			b := s.scheduled("b1", base, asked(target)...)
			b.Change = change("c1", pick(base, head))
			s.decide(b)
			f := s.finished(target)
			if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.HasSuffix(f.Reason, "; the step was not run.") {
				t.Errorf("%s: %s", f.Outcome, f.Reason)
			}
			want := map[string]string{"unknown": "ATOKEN, which the queue's steps.secrets does not have", "approved": "nobody can have that role yet"}[name]
			if want == "" {
				want = "and this change adds or alters it: somebody who may push past the queue has to push the step's definition to the mainline, then land the change again"
			}
			if !strings.Contains(f.Reason, want) {
				t.Errorf("reason %q, want %q", f.Reason, want)
			}
			if _, err := os.Stat(s.outside("ran")); err == nil {
				t.Error("it was run")
			}
		})
	}
}

func TestAChangeThatLeavesADefinitionAloneHasItsSecret(t *testing.T) {
	s := newSite(t, memory.Options{})
	s.t.Setenv("BUILDERS_KEY", "key-of-the-builder")
	withSecrets(s, "token-in-a-file")
	base := s.commit("", map[string]string{"landfall.yaml": usesSecrets, "other.sh": "true\n", "deploy.sh": "false\n"})
	head := s.commit(base, map[string]string{"deploy.sh": "grep -c token $TOKEN_FILE\n"})
	s.start("a")
	b := s.scheduled("b1", base, asked("//:t")...)
	b.Change = change("c1", pick(base, head))
	s.decide(b)
	if f := s.finished("//:t"); f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_PASSED {
		t.Errorf("%s: %s", f.Outcome, f.Reason)
	}
}

func TestASecretThatCannotBeReadIsTheWorkersFault(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		want  string
	}{"short": {"1234567\n", "fewer than 8 bytes"}, "unset": {"token-in-a-file", "no variable BUILDERS_KEY"}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, memory.Options{})
			s.policy.InfrastructureRetries = 0
			withSecrets(s, c.value)
			if name == "short" {
				s.t.Setenv("BUILDERS_KEY", "key-of-the-builder")
			}
			base := s.commit("", map[string]string{"landfall.yaml": usesSecrets, "other.sh": "true\n", "deploy.sh": "true\n"})
			s.start("a")
			s.decide(s.scheduled("b1", base, asked("//:t")...))
			f := s.finished("//:t")
			if f.Outcome != eventsv1.StepOutcome_STEP_OUTCOME_COULD_NOT_RUN || !strings.Contains(f.Reason, c.want) || strings.Contains(f.Reason, strings.TrimSpace(c.value)) {
				t.Errorf("%s: %s", f.Outcome, f.Reason)
			}
		})
	}
}
