package podset

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// nameForm is how the original systems name podSets: application, logical data center
// and group, as in bbcc-gz01b-canary.
var nameForm = regexp.MustCompile(`^.+-((?:gz|rz)[0-9a-z]*)-(canary|blue|green|svc)$`)

// GroupOf a podSet: what its metadata says, or its name.
func GroupOf(p *v1beta1.PodSet) string {
	if group := p.Meta[v1beta1.LabelGroup]; group != "" {
		return group
	}
	if m := nameForm.FindStringSubmatch(p.Name); m != nil {
		return m[2]
	}
	return ""
}

func ldcOf(p *v1beta1.PodSet) string {
	if ldc := p.Meta[v1beta1.LabelLDC]; ldc != "" {
		return ldc
	}
	if m := nameForm.FindStringSubmatch(p.Name); m != nil {
		return m[1]
	}
	return ""
}

// reserved labels are ours to set.
var reserved = []string{v1beta1.LabelApp, v1beta1.LabelRelease}

// metadata of the unit's object and pods: labels, and as annotations what is no label
// value. Of equal keys the later one wins: spec.labels, spec.meta, the cluster's meta, the
// podSet's meta, and then what we say. The template's own stand below all of them.
func (b *builder) metadata() (labels, annotations map[string]string) {
	labels, annotations = map[string]string{}, map[string]string{}
	for _, source := range []struct {
		path string
		meta map[string]string
	}{
		{"spec.labels", b.app.Spec.Labels}, {"spec.meta", b.app.Spec.Meta},
		{fmt.Sprintf("spec.clusterTopology.clusters[%s].meta", b.cluster.Name), b.cluster.Meta}, {b.path + ".meta", b.podSet.Meta},
	} {
		for _, key := range slices.Sorted(maps.Keys(source.meta)) {
			value := source.meta[key]
			switch {
			case slices.Contains(reserved, key):
				b.problem(source.path+"["+key+"]", "the label %s is what the selectors of all children go by; choose another key", key)
			case len(validation.IsQualifiedName(key)) > 0:
				b.problem(source.path+"["+key+"]", "this is no key of a label: %s", strings.Join(validation.IsQualifiedName(key), "; "))
			case len(validation.IsValidLabelValue(value)) > 0:
				annotations[key] = value
				delete(labels, key)
			default:
				labels[key] = value
				delete(annotations, key)
			}
		}
	}
	ours := map[string]string{
		v1beta1.LabelApp: b.app.Name, v1beta1.LabelRelease: b.podSet.Name, v1beta1.LabelVersion: b.podSet.Version,
		v1beta1.LabelGroup: GroupOf(b.podSet), v1beta1.LabelLDC: ldcOf(b.podSet),
	}
	if strings.Contains(b.app.Spec.ServiceName, ".") {
		ours[v1beta1.LabelDomain] = b.app.Spec.ServiceName
	}
	if labels[v1beta1.LabelCluster] == "" && annotations[v1beta1.LabelCluster] == "" {
		ours[v1beta1.LabelCluster] = b.cluster.Name
	}
	for key, value := range ours {
		switch {
		case value == "":
		case len(validation.IsValidLabelValue(value)) > 0:
			annotations[key] = value
			delete(labels, key)
		default:
			labels[key] = value
			delete(annotations, key)
		}
	}
	return labels, annotations
}
