package main

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/firn-id/firn/config"
	"github.com/firn-id/firn/pool"
)

// The manifests of examples/kubernetes are read by a schema that is written down
// here: the fields they use, with their types, and no others. A server may know of
// more that is wrong; what is told here is what is easily got wrong by hand.

type manifest struct {
	APIVersion string       `yaml:"apiVersion"`
	Kind       string       `yaml:"kind"`
	Metadata   metadata     `yaml:"metadata"`
	Spec       manifestSpec `yaml:"spec"`

	Type       string            `yaml:"type"` // of a Secret
	StringData map[string]string `yaml:"stringData"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// manifestSpec has what the specs of a Deployment, a StatefulSet and a Service have;
// specFields says which.
type manifestSpec struct {
	Replicas *int64 `yaml:"replicas"`
	Strategy *struct {
		Type          string `yaml:"type"`
		RollingUpdate struct {
			MaxSurge       int64 `yaml:"maxSurge"`
			MaxUnavailable int64 `yaml:"maxUnavailable"`
		} `yaml:"rollingUpdate"`
	} `yaml:"strategy"`
	UpdateStrategy *struct {
		Type string `yaml:"type"`
	} `yaml:"updateStrategy"`
	ServiceName         string       `yaml:"serviceName"`
	PodManagementPolicy string       `yaml:"podManagementPolicy"`
	Selector            yaml.Node    `yaml:"selector"`
	Template            *podTemplate `yaml:"template"`

	ClusterIP string `yaml:"clusterIP"`
	Ports     []struct {
		Name string `yaml:"name"`
		Port int64  `yaml:"port"`
	} `yaml:"ports"`
}

var specFields = map[string][]string{
	"apps/v1 Deployment":  {"replicas", "selector", "strategy", "template"},
	"apps/v1 DaemonSet":   {"selector", "updateStrategy", "template"},
	"apps/v1 StatefulSet": {"replicas", "selector", "serviceName", "podManagementPolicy", "updateStrategy", "template"},
	"v1 Service":          {"clusterIP", "selector", "ports"},
	"v1 Secret":           nil,
}

type podTemplate struct {
	Metadata struct {
		Labels map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Spec struct {
		TerminationGracePeriodSeconds int64 `yaml:"terminationGracePeriodSeconds"`
		SecurityContext               struct {
			RunAsNonRoot bool  `yaml:"runAsNonRoot"`
			RunAsUser    int64 `yaml:"runAsUser"`
			RunAsGroup   int64 `yaml:"runAsGroup"`
			FSGroup      int64 `yaml:"fsGroup"`

			SupplementalGroups []int64 `yaml:"supplementalGroups"`
			SeccompProfile     struct {
				Type string `yaml:"type"`
			} `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		InitContainers []container `yaml:"initContainers"`
		Containers     []container `yaml:"containers"`
		Volumes        []volume    `yaml:"volumes"`
	} `yaml:"spec"`
}

type volume struct {
	Name     string `yaml:"name"`
	EmptyDir *struct {
		Medium    string `yaml:"medium"`
		SizeLimit string `yaml:"sizeLimit"`
	} `yaml:"emptyDir"`
	HostPath *struct {
		Path string `yaml:"path"`
		Type string `yaml:"type"`
	} `yaml:"hostPath"`
}

type container struct {
	RestartPolicy string `yaml:"restartPolicy"`

	Name    string   `yaml:"name"`
	Image   string   `yaml:"image"`
	Command []string `yaml:"command"`
	Args    []string `yaml:"args"`
	Env     []struct {
		Name      string `yaml:"name"`
		ValueFrom struct {
			SecretKeyRef struct {
				Name string `yaml:"name"`
				Key  string `yaml:"key"`
			} `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	} `yaml:"env"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort int64  `yaml:"containerPort"`
	} `yaml:"ports"`
	StartupProbe    *probe `yaml:"startupProbe"`
	ReadinessProbe  *probe `yaml:"readinessProbe"`
	LivenessProbe   *probe `yaml:"livenessProbe"`
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		Name      string `yaml:"name"`
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	PeriodSeconds    int64 `yaml:"periodSeconds"`
	FailureThreshold int64 `yaml:"failureThreshold"`
}

var (
	dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	quantity = regexp.MustCompile(`^[0-9]+(m|Ki|Mi|Gi)?$`)
	image    = regexp.MustCompile(`^[a-z0-9./-]+:[0-9]+\.[0-9]+\.[0-9]+$`)
)

// readManifests reads the documents of a file, strictly.
func readManifests(text []byte) (all []manifest, err error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithKnownFields(), yaml.WithUniqueKeys())
	if err != nil {
		return nil, err
	}
	for {
		var m manifest
		if err := loader.Load(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, specsOf(text)
}

// specsOf reports fields of specs that their kind does not have.
func specsOf(text []byte) error {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return err
	}
	for {
		var m struct {
			APIVersion string               `yaml:"apiVersion"`
			Kind       string               `yaml:"kind"`
			Spec       map[string]yaml.Node `yaml:"spec"`
		}
		if err := loader.Load(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		known, ok := specFields[m.APIVersion+" "+m.Kind]
		if !ok {
			return errors.New("no " + m.APIVersion + " " + m.Kind + " is known")
		}
		for field := range m.Spec {
			if !slices.Contains(known, field) {
				return errors.New("the spec of a " + m.Kind + " has no " + field)
			}
		}
	}
}

func TestKubernetesManifests(t *testing.T) {
	files, err := filepath.Glob("../../examples/kubernetes/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	var all []manifest
	pools := map[string]config.LeaseOptions{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := readManifests(text)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		all = append(all, ms...)
		readPools(t, string(text), pools)
	}
	secrets := map[string]bool{}
	for _, m := range all {
		for key := range m.StringData {
			secrets[m.Metadata.Name+"/"+key] = true
		}
	}
	for _, m := range all {
		t.Run(m.Kind+" "+m.Metadata.Name, func(t *testing.T) {
			if !dnsLabel.MatchString(m.Metadata.Name) {
				t.Errorf("%q is no name", m.Metadata.Name)
			}
			if m.Spec.Template != nil {
				m.checkPods(t, secrets, pools)
			}
			if m.Spec.ServiceName != "" && !slices.ContainsFunc(all, func(s manifest) bool {
				return s.Kind == "Service" && s.Metadata.Name == m.Spec.ServiceName && s.Spec.ClusterIP == "None"
			}) {
				t.Errorf("there is no headless Service %s", m.Spec.ServiceName)
			}
		})
	}
}

// checkPods checks what runs pods.
func (m *manifest) checkPods(t *testing.T, secrets map[string]bool, pools map[string]config.LeaseOptions) {
	var selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	if err := m.Spec.Selector.Decode(&selector); err != nil {
		t.Error(err)
	}
	pod := m.Spec.Template
	if len(selector.MatchLabels) == 0 || !maps.Equal(selector.MatchLabels, pod.Metadata.Labels) {
		t.Errorf("the selector %v is not the pods' labels %v", selector.MatchLabels, pod.Metadata.Labels)
	}
	if s := pod.Spec.SecurityContext; m.Kind == "DaemonSet" && s.RunAsGroup == 0 || m.Kind != "DaemonSet" && (!s.RunAsNonRoot || s.RunAsUser == 0) || pod.Spec.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("%+v", pod.Spec.SecurityContext)
	}
	if pod.Spec.TerminationGracePeriodSeconds < 10 {
		t.Errorf("%d s to end and to give the worker back", pod.Spec.TerminationGracePeriodSeconds)
	}
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 1 {
		t.Fatalf("%d containers", len(pod.Spec.Containers))
	}
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	paged := slices.ContainsFunc(pod.Spec.Volumes, func(v volume) bool { return v.Name == "page" })
	for i, c := range all {
		if sidecar := i < len(pod.Spec.InitContainers); sidecar != (c.RestartPolicy == "Always") {
			t.Errorf("%s: restartPolicy %q", c.Name, c.RestartPolicy)
		}
		c.check(t, secrets, paged && len(c.Command) == 0)
		for _, mount := range c.VolumeMounts {
			if i := slices.IndexFunc(pod.Spec.Volumes, func(v volume) bool { return v.Name == mount.Name && (v.EmptyDir != nil || v.HostPath != nil) }); i < 0 || !strings.HasPrefix(mount.MountPath, "/") {
				t.Errorf("volume %s at %s", mount.Name, mount.MountPath)
			}
		}
		if paged {
			m.checkPage(t, c, pools)
		} else if len(c.Command) > 0 {
			m.checkHold(t, c, pools)
		}
	}
}

// checkPage checks a container of a pod with a page: firn agent, or a program that is told the path.
func (m *manifest) checkPage(t *testing.T, c container, pools map[string]config.LeaseOptions) {
	if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != "page" || c.VolumeMounts[0].MountPath != "/run/firn" {
		t.Errorf("%s: %+v", c.Name, c.VolumeMounts)
	}
	spec := &m.Spec.Template.Spec
	for _, v := range spec.Volumes {
		switch {
		case v.EmptyDir != nil && (v.EmptyDir.Medium != "Memory" || !quantity.MatchString(v.EmptyDir.SizeLimit)), v.HostPath != nil && *v.HostPath != struct {
			Path string `yaml:"path"`
			Type string `yaml:"type"`
		}{"/run/firn", "DirectoryOrCreate"}:
			t.Errorf("%+v", v)
		case v.EmptyDir != nil && spec.SecurityContext.FSGroup == 0:
			t.Error("agent and program have no group in common")
		}
	}
	if len(c.Command) == 0 {
		if !slices.Contains(c.Args, "/run/firn/page") {
			t.Errorf("%s is not told where the page is: %q", c.Name, c.Args)
		}
		return
	}
	cmd, args, err := newRoot().Find(append(slices.Clone(c.Command[1:]), c.Args...))
	if err != nil || c.Command[0] != "firn" || cmd.CommandPath() != "firn agent" {
		t.Fatalf("%v: %v", c.Command, err)
	}
	if err := cmd.ParseFlags(args); err != nil || !slices.Equal(cmd.Flags().Args(), []string{"/run/firn/page"}) {
		t.Fatal(c.Args, err)
	}
	if at, err := config.ParseAddress(cmd.Flags().Lookup("listen").Value.String()); err != nil || !at.Beyond() || !strings.HasSuffix(at.At, ":"+strconv.FormatInt(c.Ports[0].ContainerPort, 10)) {
		t.Errorf("the kubelet cannot ask %s, %v", at, err)
	}
	created, ok := pools[cmd.Flags().Lookup("pool").Value.String()]
	if !ok {
		t.Fatalf("no comment creates the pool of %q", c.Args)
	}
	if m.Spec.Replicas != nil {
		if need := 2 * (*m.Spec.Replicas + m.Spec.Strategy.RollingUpdate.MaxSurge); created.Workers.Count() < need {
			t.Errorf("workers %s; %d are needed", created.Workers, need)
		}
	}
}

func (c *container) check(t *testing.T, secrets map[string]bool, client bool) {
	if !dnsLabel.MatchString(c.Name) || !image.MatchString(c.Image) {
		t.Errorf("name %q, image %q", c.Name, c.Image)
	}
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
		t.Errorf("%+v", s)
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = p.ContainerPort > 0 && p.ContainerPort < 1<<16
	}
	for _, p := range []*probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p != nil && (!ports[p.HTTPGet.Port] || !strings.HasPrefix(p.HTTPGet.Path, "/") || p.PeriodSeconds < 1) {
			t.Errorf("%+v", p)
		}
	}
	for _, q := range []map[string]string{c.Resources.Requests, c.Resources.Limits} {
		for what, n := range q {
			if (what != "cpu" && what != "memory") || !quantity.MatchString(n) {
				t.Errorf("resources: %s %s", what, n)
			}
		}
	}
	store := false
	for _, e := range c.Env {
		ref := e.ValueFrom.SecretKeyRef
		store = store || e.Name == "FIRN_STORE"
		if !secrets[ref.Name+"/"+ref.Key] {
			t.Errorf("%s: there is no secret %s/%s", e.Name, ref.Name, ref.Key)
		}
	}
	if store == client {
		t.Errorf("%s: FIRN_STORE is set: %t", c.Name, store)
	}
}

// poolCreated is the command, in the comment of a manifest, that creates its pool.
var poolCreated = regexp.MustCompile(`(?m)^# +\$ (firn pool create .*)$`)

// readPools reads which pools the comments of a manifest create.
func readPools(t *testing.T, text string, pools map[string]config.LeaseOptions) {
	for _, m := range poolCreated.FindAllStringSubmatch(text, -1) {
		cmd, args, err := newRoot().Find(strings.Fields(m[1])[1:])
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err != nil || cmd.Flags().NArg() > 1 {
			t.Fatalf("%s: %v", m[1], err)
		}
		var o config.LeaseOptions
		for _, name := range []string{"layout", "workers"} {
			flag := cmd.Flags().Lookup(name)
			if !flag.Changed {
				continue
			}
			if err := config.KeyNamed(config.LeaseKeys, name).Set(&o, flag.Value.String()); err != nil {
				t.Fatalf("%s: --%s: %v", m[1], name, err)
			}
		}
		pools[cmp.Or(cmd.Flags().Arg(0), pool.Default)] = o
	}
}

// checkHold checks the command line of firn, and that the pool has workers enough.
func (m *manifest) checkHold(t *testing.T, c container, pools map[string]config.LeaseOptions) {
	cmd, args, err := newRoot().Find(append(slices.Clone(c.Command[1:]), c.Args...))
	if err != nil || c.Command[0] != "firn" || cmd.CommandPath() != "firn run" {
		t.Fatalf("%v: %v", c.Command, err)
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	if cmd.ArgsLenAtDash() != 0 || cmd.Flags().NArg() == 0 {
		t.Errorf("there is no -- COMMAND in %q", c.Args)
	}
	var o config.LeaseOptions
	for _, k := range config.LeaseKeys {
		if f := cmd.Flags().Lookup(k.Name); f != nil && f.Changed {
			if err := k.Set(&o, f.Value.String()); err != nil {
				t.Errorf("--%s: %v", k.Name, err)
			}
		}
	}
	// The program answers its probe only after it has a worker: docs/guides/kubernetes.md, Probes.
	if p := c.StartupProbe; p == nil || time.Duration(p.PeriodSeconds*p.FailureThreshold)*time.Second <= o.Wait {
		t.Errorf("the kubelet ends a container that waits for its worker, for %v: %+v", o.Wait, p)
	}
	surge := int64(0)
	if m.Spec.Strategy != nil {
		surge = m.Spec.Strategy.RollingUpdate.MaxSurge
	}
	if _, only := o.Choice.Only(); only || o.Hostname != (m.Kind == "StatefulSet") {
		t.Errorf("--worker does not fit a %s", m.Kind)
	}
	created, ok := pools[cmd.Flags().Lookup("pool").Value.String()]
	if !ok || created.Layout != o.Layout {
		t.Fatalf("no comment creates the pool of %q", c.Args)
	}
	// As docs/guides/kubernetes.md says: a pod that died leaves a worker that is of no use
	// for some minutes, and all of them may die.
	if need := 2 * (*m.Spec.Replicas + surge); created.Workers.Count() < need || created.Workers.Last >= o.Layout.Workers() {
		t.Errorf("workers %s; %d are needed, and the layout has %d", created.Workers, need, o.Layout.Workers())
	}
}

// The schema refuses what is wrong.
func TestKubernetesManifestsCatch(t *testing.T) {
	text, err := os.ReadFile("../../examples/kubernetes/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, now string }{
		{"maxSurge: 2", "maxsurge: 2"},
		{"maxSurge: 2", "maxSurge: two"},
		{"replicas: 6", "replicas: 6\n  serviceName: x"},
		{"kind: Deployment", "kind: Deploy"},
		{"readOnlyRootFilesystem", "readOnlyFilesystem"},
		{"secretKeyRef", "secretRef"},
		{"httpGet", "http"},
		{"containers:", "container:"},
		{"replicas: 6", "replicas: 6\n  replicas: 7"},
		{"terminationGracePeriodSeconds: 35", "terminationGracePeriodSeconds: 35s"},
	} {
		if !strings.Contains(string(text), tt.old) {
			t.Fatal(strconv.Quote(tt.old) + " is not there")
		}
		if _, err := readManifests([]byte(strings.Replace(string(text), tt.old, tt.now, 1))); err == nil {
			t.Errorf("%q in place of %q is not noticed", tt.now, tt.old)
		}
	}
}
