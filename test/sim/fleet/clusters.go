package fleet

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/bases"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/test/sim/apiserver"
)

const (
	namespace = "shop"
	// registry is the namespace of the registrations.
	registry = "fleet"

	appSets = "appsets"
	parts   = "advdeployments"
	grants  = "confirmations"

	// shared is the podSet that clusters share.
	shared = "web-all"
)

type object = apiserver.Object

// memberNames in the order in which they are taken.
func memberNames(n int) []string { return []string{"one", "two", "three", "four", "five"}[:n] }

// cluster is an API server with the name that it is known by here.
type cluster struct {
	*apiserver.Server
	name string
	// token that it takes.
	token string
	uid   types.UID
	// births counts how often it was built.
	births int
}

// partFields own the fields of parts.
var partFields = sync.OnceValues(func() (*apiserver.Fields, error) {
	crds, err := bases.CRDs(v1beta1.KindAdvDeployment)
	if err != nil {
		return nil, err
	}
	return apiserver.FieldsOf(crds[0])
})

func kinds() map[string]apiserver.Kind {
	out := apiserver.Core()
	gvk := v1beta1.SchemeGroupVersion.WithKind
	out[appSets] = apiserver.Custom(gvk(v1beta1.KindAppSet), func() object { return &v1beta1.AppSet{} }, func() runtime.Object { return &v1beta1.AppSetList{} })
	out[grants] = apiserver.Custom(gvk(v1beta1.KindConfirmation), func() object { return &v1beta1.Confirmation{} }, func() runtime.Object { return &v1beta1.ConfirmationList{} })
	part := apiserver.Custom(gvk(v1beta1.KindAdvDeployment), func() object { return &v1beta1.AdvDeployment{} }, func() runtime.Object { return &v1beta1.AdvDeploymentList{} })
	fields, err := partFields()
	if err != nil {
		panic(err) // the CRD is a part of this program
	}
	part.Fields = fields
	out[parts] = part
	return out
}

// build a cluster that has nothing but its namespaces.
func (w *world) build(c *cluster) {
	c.births++
	c.Server = apiserver.New(w.now, kinds())
	c.NeedsNamespaces = true
	c.Name = fmt.Sprintf("%s-%d-", c.name, c.births)
	c.Watchers = append(c.Watchers, func(change *apiserver.Change) { w.see(c, change) })
	names := []string{metav1.NamespaceSystem, namespace, registry}
	if w.plan.Charted {
		names = append(names, v1beta1.DefaultChartNamespace)
	}
	for _, name := range names {
		made, _ := c.Create(apiserver.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, w.as("installer"))
		if name == metav1.NamespaceSystem {
			c.uid = made.GetUID()
		}
	}
}

// kubeconfig that leads to a cluster.
func kubeconfig(c *cluster) string {
	return fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "it",
"clusters": [{"name": "it", "cluster": {"server": "https://%s.example:6443"}}],
"users": [{"name": "it", "user": {"token": "%s"}}],
"contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}`, c.name, c.token)
}

// register a cluster with the hub, or have its registration be what it should be.
func (w *world) register(c *cluster) {
	key := apiserver.KeyOf(registry, c.name)
	if w.hub.Get(apiserver.Secrets, key) == nil {
		_, _ = w.hub.Create(apiserver.Secrets, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: registry, Name: c.name, Labels: map[string]string{v1beta1.LabelOwner: v1beta1.OwnerLegacy}},
			Data:       map[string][]byte{v1beta1.KeyKubeconfig: []byte(kubeconfig(c))},
		}, w.as("operator"))
		return
	}
	w.reregister(c.name, func(s *corev1.Secret) {
		s.Data = map[string][]byte{v1beta1.KeyKubeconfig: []byte(kubeconfig(c))}
	})
}

func (w *world) reregister(name string, edit func(*corev1.Secret)) {
	_, _ = w.hub.Update(apiserver.Secrets, apiserver.KeyOf(registry, name), "", w.as("operator"), func(o object) error {
		edit(o.(*corev1.Secret))
		return nil
	})
}
