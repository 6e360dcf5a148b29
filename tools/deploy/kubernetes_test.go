package deploy

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"landfall.build/platform/configuration"
)

var update = flag.Bool("update", false, "write the manifests anew, of the chart with its own values")

const (
	folder    = "../../deploy"
	manifests = folder + "/kubernetes/landfall.yaml"
)

// services lists the services of the binary.
var services = []string{
	"analyzer", "builder", "enumerator", "gateway", "historian", "hosts", "lander", "outcomes", "prioritizer", "profiler", "selector", "tracer",
	"trainer", "webhooks",
}

// full are values that turn on every part of the chart.
const full = `
image: {repository: registry.example.com/landfall, tag: "1", pullSecrets: [{name: pull}]}
services:
  webhooks: {replicas: 1}
  hosts: {replicas: 2}
  tracer: {replicas: 1}
  historian: {replicas: 2}
  trainer: {replicas: 1}
kafka: {secret: kafka}
clickhouse: {secret: clickhouse, readSecret: clickhouse-read}
secrets:
  registry-token: {secret: ci, key: token, services: [builder]}
  oidc: {secret: oidc, key: client, services: [gateway]}
  forge: {secret: forge, key: token, services: [hosts]}
  bucket: {secret: bucket, key: key, services: [archiver]}
storageClass: fast
nodeSelector: {pool: ci}
tolerations: [{key: ci, operator: Exists}]
env: [{name: OTEL_EXPORTER_OTLP_ENDPOINT, value: "http://collector:4317"}]
archive: {schedule: "17 3 * * *"}
config: {broker: {archive: {url: "s3://landfall/log"}}}
ingress: {enabled: true, className: nginx, annotations: {a: b}}
service: {annotations: {a: b}}
`

// render returns the documents of the chart with values over its own.
func render(t *testing.T, values string) []string {
	t.Helper()
	chart, err := loader.LoadDir(folder + "/helm/landfall")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &own); err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(chart, own, common.ReleaseOptions{Name: "landfall", Namespace: "landfall", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for document := range strings.SplitSeq("\n"+files[name], "\n---\n") {
			if strings.TrimSpace(document) != "" {
				documents = append(documents, strings.Trim(document, "\n")+"\n")
			}
		}
	}
	return documents
}

// cluster holds the objects of the chart, by name.
type cluster struct {
	sets     map[string]*appsv1.StatefulSet
	services map[string]*corev1.Service
	maps     map[string]*corev1.ConfigMap
	budgets  []*policyv1.PodDisruptionBudget
	policies []*networkingv1.NetworkPolicy
	ingress  *networkingv1.Ingress
	jobs     map[string]*batchv1.CronJob
}

// read decodes documents as Kubernetes does when it is told to be strict: a field that a kind does not have is an error.
func read(t *testing.T, documents []string) *cluster {
	t.Helper()
	c := &cluster{sets: map[string]*appsv1.StatefulSet{}, services: map[string]*corev1.Service{}, maps: map[string]*corev1.ConfigMap{}, jobs: map[string]*batchv1.CronJob{}}
	seen := map[string]bool{}
	for _, document := range documents {
		var head struct {
			APIVersion, Kind string
			Metadata         struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		id := head.Kind + " " + head.Metadata.Name
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		into := func(m any) {
			if err := yaml.UnmarshalStrict([]byte(document), m); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		switch head.APIVersion + " " + head.Kind {
		case "apps/v1 StatefulSet":
			set := &appsv1.StatefulSet{}
			into(set)
			c.sets[set.Name] = set
		case "v1 Service":
			s := &corev1.Service{}
			into(s)
			c.services[s.Name] = s
		case "v1 ConfigMap":
			m := &corev1.ConfigMap{}
			into(m)
			c.maps[m.Name] = m
		case "batch/v1 CronJob":
			job := &batchv1.CronJob{}
			into(job)
			c.jobs[job.Name] = job
		case "v1 ServiceAccount":
			into(&corev1.ServiceAccount{})
		case "policy/v1 PodDisruptionBudget":
			b := &policyv1.PodDisruptionBudget{}
			into(b)
			c.budgets = append(c.budgets, b)
		case "networking.k8s.io/v1 NetworkPolicy":
			p := &networkingv1.NetworkPolicy{}
			into(p)
			c.policies = append(c.policies, p)
		case "networking.k8s.io/v1 Ingress":
			c.ingress = &networkingv1.Ingress{}
			into(c.ingress)
		default:
			t.Errorf("%s %s is of a kind that nothing here knows", head.APIVersion, id)
		}
	}
	return c
}

// selects reports whether labels have all that a selector asks for.
func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

// checkPod looks at the volumes of a pod, its rights, its bounds, and who reaches it.
func (c *cluster) checkPod(t *testing.T, name string, of *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) {
	t.Helper()
	pod := of.Spec
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range claims {
		if volumes[v.Name] {
			t.Errorf("%s: volume %s is there twice", name, v.Name)
		}
		volumes[v.Name] = true
	}
	used := map[string]bool{}
	container := pod.Containers[0]
	for _, m := range container.VolumeMounts {
		used[m.Name] = true
		if !volumes[m.Name] {
			t.Errorf("%s mounts %s, which is no volume of it", name, m.Name)
		}
	}
	for v := range volumes {
		if !used[v] {
			t.Errorf("%s does not mount its volume %s", name, v)
		}
	}
	security := container.SecurityContext
	if !*security.ReadOnlyRootFilesystem || security.Capabilities.Drop[0] != "ALL" || *pod.AutomountServiceAccountToken {
		t.Errorf("%s: a container may write its root, keeps capabilities, or has a token of the cluster", name)
	}
	if container.Name != "builder" && (*security.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot || len(security.Capabilities.Add) > 0) {
		t.Errorf("%s: a container that runs no steps has rights", name)
	}
	if container.Resources.Requests.Memory().IsZero() || container.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s has no request or no limit of memory", name)
	}
	protected := slices.ContainsFunc(c.policies, func(p *networkingv1.NetworkPolicy) bool { return selects(p.Spec.PodSelector.MatchLabels, of.Labels) })
	if !protected {
		t.Errorf("%s is reached by everybody", name)
	}
}

// check looks at what strict decoding does not: names that have to fit each other, and hardening.
func (c *cluster) check(t *testing.T) {
	t.Helper()
	for name, set := range c.sets {
		pod := set.Spec.Template.Spec
		if !selects(set.Spec.Selector.MatchLabels, set.Spec.Template.Labels) {
			t.Errorf("%s does not select its own pods", name)
		}
		governing := c.services[set.Spec.ServiceName]
		if governing == nil || !selects(governing.Spec.Selector, set.Spec.Template.Labels) {
			t.Errorf("%s: its service %q does not lead to its pods", name, set.Spec.ServiceName)
		}
		c.checkPod(t, name, &set.Spec.Template, set.Spec.VolumeClaimTemplates)
		container := pod.Containers[0]
		ports := map[string]bool{}
		for _, p := range container.Ports {
			ports[p.Name] = true
		}
		for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
			if probe == nil || !ports[probe.HTTPGet.Port.StrVal] {
				t.Errorf("%s has no probe, or one at a port that it has not", name)
			}
		}
		security := container.SecurityContext
		if container.Name == "builder" && (pod.HostUsers == nil || *pod.HostUsers || security.ProcMount == nil || *security.ProcMount != corev1.UnmaskedProcMount) {
			t.Errorf("%s: the builder is root outside of its user namespace, or has no whole /proc", name)
		}
		if guarded := slices.ContainsFunc(c.budgets, func(b *policyv1.PodDisruptionBudget) bool {
			return selects(b.Spec.Selector.MatchLabels, set.Spec.Template.Labels)
		}); guarded != (*set.Spec.Replicas > 1) {
			t.Errorf("%s has %d replicas, and a disruption budget: %v", name, *set.Spec.Replicas, guarded)
		}
	}
	for name, job := range c.jobs {
		c.checkPod(t, name, &job.Spec.JobTemplate.Spec.Template, nil)
	}
	for name, s := range c.services {
		leads := false
		for _, set := range c.sets {
			if !selects(s.Spec.Selector, set.Spec.Template.Labels) {
				continue
			}
			leads = true
			for _, p := range s.Spec.Ports {
				if !slices.ContainsFunc(set.Spec.Template.Spec.Containers[0].Ports, func(o corev1.ContainerPort) bool { return o.Name == p.TargetPort.StrVal }) {
					t.Errorf("service %s leads to port %s, which %s has not", name, p.TargetPort.StrVal, set.Name)
				}
			}
		}
		if !leads {
			t.Errorf("service %s leads nowhere", name)
		}
	}
}

// secretsOf returns the secrets that a pod sees.
func secretsOf(pod corev1.PodSpec) map[string]bool {
	seen := map[string]bool{}
	for _, v := range pod.Volumes {
		if v.Secret != nil {
			seen[v.Secret.SecretName] = true
		}
		if v.Projected != nil {
			for _, s := range v.Projected.Sources {
				seen[s.Secret.Name+"/"+s.Secret.Items[0].Key] = true
			}
		}
	}
	for _, e := range pod.Containers[0].Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			seen[e.ValueFrom.SecretKeyRef.Name] = true
		}
	}
	return seen
}

func TestTheChartIsWhatKubernetesTakes(t *testing.T) {
	plain := read(t, render(t, ""))
	plain.check(t)
	if len(plain.sets) != len(services)-5 {
		t.Errorf("by its own values the chart has %d services", len(plain.sets))
	}
	c := read(t, render(t, full))
	c.check(t)
	for _, service := range services {
		set := c.sets["landfall-"+service]
		if set == nil {
			t.Errorf("the chart has no %s", service)
			continue
		}
		if args := set.Spec.Template.Spec.Containers[0].Args; args[0] != service {
			t.Errorf("%s runs %q", service, args)
		}
	}
	if job := c.jobs["landfall-archiver"]; len(plain.jobs) != 0 || job == nil || job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Args[0] != "archive" {
		t.Errorf("the archive is made by %v, and where nobody asked for one by %v", job, plain.jobs)
	}
	reachesArchive := func(c *cluster) bool {
		return slices.ContainsFunc(c.policies, func(p *networkingv1.NetworkPolicy) bool {
			return p.Name == "landfall-brokers" && slices.ContainsFunc(p.Spec.Egress, func(e networkingv1.NetworkPolicyEgressRule) bool {
				return slices.ContainsFunc(e.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == 443 })
			})
		})
	}
	if !reachesArchive(c) || reachesArchive(plain) {
		t.Errorf("the services without a repository reach the archive's bucket: %v, and where there is none: %v", reachesArchive(c), reachesArchive(plain))
	}
	if c.ingress == nil || c.ingress.Spec.Rules[0].Host != "landfall.example.com" {
		t.Errorf("the ingress is %v", c.ingress)
	}
	if paths := c.ingress.Spec.Rules[0].HTTP.Paths; len(paths) != 2 || paths[1].Path != "/v1/hosts/" || paths[1].Backend.Service.Name != "landfall-hosts" || c.services["landfall-hosts"] == nil {
		t.Errorf("webhooks of code hosts go to %v", paths)
	}
	reached := slices.ContainsFunc(c.policies, func(p *networkingv1.NetworkPolicy) bool {
		return p.Name == "landfall-hosts" && selects(p.Spec.PodSelector.MatchLabels, c.sets["landfall-hosts"].Spec.Template.Labels) && len(p.Spec.Ingress) == 1 && p.Spec.Ingress[0].Ports[0].Port.StrVal == "webhooks"
	})
	if !reached {
		t.Error("no webhook reaches the hosts service")
	}
	if len(plain.policies) != len(c.policies)-1 || plain.services["landfall-hosts"] != nil {
		t.Error("without code hosts the chart has a way to them")
	}
}

// TestEachServiceSeesItsOwnSecretsAlone: the lander alone has the key that pushes.
func TestEachServiceSeesItsOwnSecretsAlone(t *testing.T) {
	c := read(t, render(t, full))
	for _, service := range append(slices.Clone(services), "archiver") {
		want := map[string]bool{"kafka/ca.pem": true}
		var pod corev1.PodSpec
		if set := c.sets["landfall-"+service]; set != nil {
			pod = set.Spec.Template.Spec
		} else {
			pod = c.jobs["landfall-"+service].Spec.JobTemplate.Spec.Template.Spec
		}
		for _, suffix := range []string{"", ".pem", ".key"} {
			want["kafka/"+service+suffix] = true
		}
		switch service {
		case "lander":
			want["landfall-git-push"] = true
		case "gateway":
			want["landfall-git"], want["oidc"], want["clickhouse-read"] = true, true, true
		case "builder":
			want["landfall-git"], want["ci"] = true, true
		case "analyzer":
			want["landfall-git"] = true
		case "historian", "trainer":
			want["clickhouse"] = true
		case "hosts":
			want["forge"] = true
		case "archiver":
			want["bucket"] = true
		}
		if got := secretsOf(pod); !maps.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", service, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
	}
}

// TestTheManifestsAreTheChartWithItsOwnValues, so that they need no Helm.
func TestTheManifestsAreTheChartWithItsOwnValues(t *testing.T) {
	var out bytes.Buffer
	fmt.Fprintln(&out, "# Made of ../helm/landfall with its own values, in the namespace landfall. Edit that, or this copy.")
	for _, document := range render(t, "") {
		fmt.Fprintf(&out, "---\n%s", document)
	}
	if *update {
		if err := os.WriteFile(manifests, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(manifests)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, out.Bytes()) {
		t.Errorf("%s is not what the chart makes: run the test with -update", manifests)
	}
}

// TestTheConfigurationsAreValid: those of the chart and of the compose files.
func TestTheConfigurationsAreValid(t *testing.T) {
	chart := filepath.Join(t.TempDir(), "landfall.config.yaml")
	text := read(t, render(t, "")).maps["landfall"].Data["landfall.config.yaml"]
	if err := os.WriteFile(chart, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{chart, folder + "/compose/landfall.config.yaml", folder + "/compose/landfall.cluster.yaml"} {
		c, err := configuration.Load(file, configuration.Defaults{Workers: 4})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if c.Access.Mode != "required" {
			t.Errorf("%s: a gateway that others reach asks nobody who they are", file)
		}
	}
}
