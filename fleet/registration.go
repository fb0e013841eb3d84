package fleet

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// Reasons of events about registrations.
const (
	ReasonInConfigMap = "CredentialsInConfigMap"
	ReasonTwice       = "RegisteredTwice"
	ReasonStatus      = "UnknownStatus"
)

// Reasons of states that come from a registration.
const (
	ReasonKubeconfig = "KubeconfigRefused"
	ReasonMaintained = "Maintaining"
)

// registration is what the hub says of a cluster.
type registration struct {
	name string // folded
	// from is the object; for the hub itself it has no kind.
	from corev1.ObjectReference
	meta map[string]string
	// uid of the cluster, as it is kept with this object or with another one of the name.
	uid         types.UID
	kept        bool // with this object
	kubeconfig  []byte
	maintaining bool
	config      *rest.Config
	// refused says why the kubeconfig is not used.
	refused  string
	warnings []warning
}

// warning is an event about a registration.
type warning struct{ reason, message string }

func (r *registration) warn(reason, format string, args ...any) {
	r.warnings = append(r.warnings, warning{reason, fmt.Sprintf(format, args...)})
}

// fromSecret reads a registration, without judging its kubeconfig.
func fromSecret(s *corev1.Secret) *registration {
	data := make(map[string]string, len(s.Data))
	for key, value := range s.Data {
		data[key] = string(value)
	}
	return read("Secret", s, data)
}

func fromConfigMap(c *corev1.ConfigMap) *registration {
	r := read("ConfigMap", c, c.Data)
	r.warn(ReasonInConfigMap, "the credentials of cluster %s are in a ConfigMap, which many may read; `kubectl tapp fleet secure %s` moves them into a Secret", r.name, r.name)
	return r
}

func read(kind string, o metav1.Object, data map[string]string) *registration {
	r := &registration{
		name: v1beta1.FoldClusterName(o.GetName()), uid: types.UID(o.GetAnnotations()[v1beta1.AnnotationClusterUID]),
		from: corev1.ObjectReference{APIVersion: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()},
		meta: map[string]string{},
	}
	r.kept = r.uid != ""
	for key, value := range o.GetLabels() {
		if key != v1beta1.LabelOwner && key != v1beta1.LabelRuntime {
			r.meta[key] = value
		}
	}
	for key, value := range data {
		if isMeta(key, value) {
			r.meta[key] = value
		}
	}
	key := v1beta1.KeyKubeconfig
	if _, has := data[key]; !has && o.GetLabels()[v1beta1.LabelRuntime] == "true" {
		key = v1beta1.KeyKubeconfigRuntime
	}
	if text, has := data[key]; has {
		r.kubeconfig = []byte(text)
	} else {
		r.refused = fmt.Sprintf("%s %s has no key %s", kind, o.GetName(), key)
	}
	r.readStatus(data[v1beta1.KeyStatus])
	return r
}

// isMeta says whether an entry of a registration's data is metadata of the cluster. It is
// compared with selectors, so that it has to be a label; a kubeconfig never is one, nor is
// another credential that lies beside it.
func isMeta(key, value string) bool {
	switch key {
	case v1beta1.KeyKubeconfig, v1beta1.KeyKubeconfigRuntime, v1beta1.KeyStatus:
		return false
	}
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}

// judge the kubeconfig.
func (r *registration) judge(allowLocal bool) {
	if r.refused != "" || r.config != nil {
		return
	}
	config, err := kubeconfig.Judge(r.kubeconfig, allowLocal)
	if err != nil {
		r.refused = err.Error()
		return
	}
	r.config = config
}

// rank of what registers a cluster: the hub itself, then Secrets, then ConfigMaps, then
// ClusterProfiles.
func (r *registration) rank() int {
	switch r.from.Kind {
	case "":
		return 0
	case "Secret":
		return 1
	case "ConfigMap":
		return 2
	}
	return 3
}

// merge makes one registration of those of each name: that of the lowest rank, and among
// those the first by name.
func merge(all []*registration) map[string]*registration {
	slices.SortStableFunc(all, func(a, b *registration) int {
		if order := a.rank() - b.rank(); order != 0 {
			return order
		}
		return strings.Compare(a.from.Name, b.from.Name)
	})
	out := map[string]*registration{}
	for _, r := range all {
		first := out[r.name]
		if first == nil {
			out[r.name] = r
			continue
		}
		if first.from.Kind == "" {
			first.warn(ReasonTwice, "cluster %s is the hub itself; %s %s is not used", r.name, r.from.Kind, r.from.Name)
			first.warnAbout(r)
			continue
		}
		first.warn(ReasonTwice, "cluster %s is registered twice; %s %s is used, and %s %s is not", r.name, first.from.Kind, first.from.Name, r.from.Kind, r.from.Name)
		first.warnAbout(r)
		if first.uid == "" {
			first.uid = r.uid // its identity outlives a move from one object into another
		}
	}
	return out
}

// warnAbout keeps what is to say of a registration that is not used.
func (r *registration) warnAbout(other *registration) {
	for _, w := range other.warnings {
		if w.reason == ReasonInConfigMap && !slices.Contains(r.warnings, w) {
			r.warnings = append(r.warnings, w)
		}
	}
}

// same says whether two registrations lead to the same connection.
func (r *registration) same(other *registration) bool {
	return other != nil && string(r.kubeconfig) == string(other.kubeconfig) && (r.from.Kind == "") == (other.from.Kind == "")
}

// told says whether nothing new is to be told.
func (r *registration) told(other *registration) bool {
	return other != nil && slices.Equal(r.warnings, other.warnings) && r.from.UID == other.from.UID
}

const maxQuote = 64

func cut(s string) string {
	if len(s) <= maxQuote {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuote], "") + "..."
}
