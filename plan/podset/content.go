package podset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/template"
)

// Content is everything of a unit that reaches its pods. The number of instances is not
// among it: scaling is no rollout.
type Content struct {
	DeployType string `json:"deployType"`
	// Template and claims, for all types but helm. Image, labels, annotations and node
	// affinity of the podSet are in the template.
	Template             *corev1.PodTemplateSpec        `json:"template,omitempty"`
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`
	// Chart, values (later ones are merged over earlier ones), image, version and nodes,
	// for helm.
	Chart   *Chart                   `json:"chart,omitempty"`
	Values  []string                 `json:"values,omitempty"`
	Image   string                   `json:"image,omitempty"`
	Version string                   `json:"version,omitempty"`
	Nodes   *corev1.NodeSelectorTerm `json:"nodes,omitempty"`

	Selector    *metav1.LabelSelector `json:"selector,omitempty"`
	ServiceName string                `json:"serviceName,omitempty"`
	Labels      map[string]string     `json:"labels,omitempty"`
	Annotations map[string]string     `json:"annotations,omitempty"`
}

// hashPrefix names the scheme, so that another one can follow.
const hashPrefix = "u1-"

// hash of the content. Two spellings of one template hash alike, as in plan/template.
func (c *Content) hash() (string, error) {
	bare := struct {
		Content
		TemplateHash string `json:"templateHash,omitempty"`
	}{Content: *c}
	if c.Template != nil {
		hash, err := template.HashWhole(c.Template)
		if err != nil {
			return "", err
		}
		bare.Template, bare.TemplateHash = nil, hash
	}
	text, err := json.Marshal(bare)
	if err != nil {
		return "", fmt.Errorf("hash the content of a podSet: %w", err)
	}
	return hashPrefix + template.Digest(text), nil
}

// builder makes the content of one unit.
type builder struct {
	app        *v1beta1.AppSet
	deployType string
	cluster    *v1beta1.TargetCluster
	podSet     *v1beta1.PodSet
	path       string

	notes    []Note
	problems []Problem
}

func (b *builder) problem(field, format string, args ...any) {
	b.problems = append(b.problems, Problem{field, fmt.Sprintf(format, args...)})
}

func (b *builder) note(field, format string, args ...any) {
	b.notes = append(b.notes, Note{field, fmt.Sprintf(format, args...)})
}

// maxStatefulSetName is how long the name of a StatefulSet may be, in bytes, so that the label
// controller-revision-hash of its pods is one: the name, a dash, and up to 10 digits.
const maxStatefulSetName = 52

func (b *builder) build(u *Unit) {
	spec := &b.app.Spec.PodSpec
	labels, annotations := b.metadata()
	c := Content{DeployType: b.deployType, Selector: spec.Selector, ServiceName: b.app.Spec.ServiceName, Labels: labels, Annotations: annotations}
	u.Group, u.Version = GroupOf(b.podSet), b.podSet.Version
	if n := len(b.podSet.Name); b.deployType == v1beta1.DeployStatefulSet && n > maxStatefulSetName {
		b.problem(b.path+".name", "it has %d characters, and a StatefulSet at most %d: a label of its pods has the name, and a hash", n, maxStatefulSetName)
		return
	}
	if b.podSet.Image != "" && !isImage(b.podSet.Image) {
		b.problem(b.path+".image", "%q is no reference to an image", b.podSet.Image)
		return
	}
	if b.podSet.RawValues != "" {
		if problems := problemsOfValues(b.path+".rawValues", b.podSet.RawValues); len(problems) > 0 {
			b.problems = append(b.problems, problems...)
			return
		}
	}
	if b.deployType == v1beta1.DeployHelm {
		c.Image, c.Version, c.Nodes = b.podSet.Image, b.podSet.Version, b.podSet.NodeSelectorTerm
		chart, at := b.podSet.Chart, b.path+".chart"
		if chart == nil {
			chart, at = spec.Chart, "spec.podSpec.chart"
		}
		if len(chart.RawChart) > 0 && !isArchive(chart.RawChart) {
			b.problem(at+".rawChart", "it is no archive of a chart, as `helm package` makes one")
			return
		}
		c.Chart = chartOf(chart)
		if u.Version == "" && chart.ChartURL != nil {
			u.Version = chart.ChartURL.ChartVersion
		}
		for _, values := range []string{spec.RawValues, b.podSet.RawValues} {
			if values != "" {
				c.Values = append(c.Values, values)
			}
		}
	} else {
		c.Template, c.VolumeClaimTemplates = b.template(u, labels, annotations), spec.VolumeClaimTemplates
		if c.Template == nil {
			return
		}
	}
	var err error
	if u.Hash, err = c.hash(); err != nil {
		b.problem("spec.podSpec.template", "%v", err)
	}
	u.Content = c
}

// template of the unit: that of podSpec with what the podSet says. It shares with podSpec what
// is equal in both. Nil: there is a problem.
func (b *builder) template(u *Unit, labels, annotations map[string]string) *corev1.PodTemplateSpec {
	t := new(*b.app.Spec.PodSpec.Template)
	main := MainContainer(t, b.app.Name)
	if main < 0 {
		b.problem("spec.podSpec.template.spec.containers", "the template has no container")
		return nil
	}
	for _, key := range reserved {
		if value, given := t.Labels[key]; given && value != labels[key] {
			b.problem("spec.podSpec.template.metadata.labels["+key+"]", "the label %s is what the selectors of all children go by; choose another key", key)
			return nil
		}
	}
	t.Spec.Containers = slices.Clone(t.Spec.Containers)
	container := &t.Spec.Containers[main]
	image, labelOnly := ImageOf(b.podSet.Image, container.Image, b.podSet.Version)
	if labelOnly && b.podSet.Image == "" {
		b.note(b.path+".version", "version %s labels the pods; their image stays %s; leave out its tag to have the version there", b.podSet.Version, image)
	}
	container.Image = image
	if u.Version == "" {
		u.Version = VersionOf(image)
	}
	t.Labels, t.Annotations = over(t.Labels, labels), over(t.Annotations, annotations)
	if term := b.podSet.NodeSelectorTerm; term != nil {
		t.Spec.Affinity = t.Spec.Affinity.DeepCopy()
		requireNodes(&t.Spec, term)
	}
	return t
}

// over is base with more above it; nil if there is nothing.
func over(base, more map[string]string) map[string]string {
	if len(base)+len(more) == 0 {
		return nil
	}
	out := make(map[string]string, len(base)+len(more))
	maps.Copy(out, base)
	maps.Copy(out, more)
	return out
}

// requireNodes adds the term to what the pod requires of its nodes: terms are
// alternatives, so that each of them gets it.
func requireNodes(spec *corev1.PodSpec, term *corev1.NodeSelectorTerm) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	n := spec.Affinity.NodeAffinity
	if n.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		n.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{*term.DeepCopy()}}
		return
	}
	terms := n.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(slices.Clip(terms[i].MatchExpressions), term.DeepCopy().MatchExpressions...)
		terms[i].MatchFields = append(slices.Clip(terms[i].MatchFields), term.DeepCopy().MatchFields...)
	}
}
