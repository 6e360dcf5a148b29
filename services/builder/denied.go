package builder

import (
	"context"
	"strings"

	"landfall.build/engine/targets"
	"landfall.build/services/builder/provision"
	"landfall.build/services/builder/secrets"
)

// denied returns why a step may not have a secret that it names, as a sentence; "" if it may have all. It compares with the
// mainline of the step's build, without the changes that the build assumes: they have not landed.
func (w *worker) denied(ctx context.Context, j *job, a *assembly, target targets.Target) (string, error) {
	names := provision.SecretNames(target)
	if len(names) == 0 {
		return "", nil
	}
	// A mainline whose definitions are not valid defines no target in the same way.
	base, _, err := w.graphs[j.queue].Part(ctx, a.repo, a.base)
	if err != nil {
		return "", err
	}
	mainline, _ := base.Target(target.Name)
	for _, name := range names {
		secret, known := w.Configuration.Queues[j.queue].Steps.Secrets[name]
		if err := secrets.Allowed(name, secret, known, target, mainline); err != nil {
			return sentence(err), nil
		}
	}
	return "", nil
}

// sentence returns an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
