//go:build cluster

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
)

// eye looks at a cluster as `kubectl get` does, for a hundredth of what starting a program
// costs. It tells when it is worth to ask kubectl, whose word counts.
type eye struct {
	objects dynamic.Interface
	kinds   func() meta.RESTMapper
}

func newEye(config *rest.Config) (*eye, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	// Read at the first look: by then the suite has installed its kinds.
	return &eye{objects, sync.OnceValue(func() meta.RESTMapper {
		known := memory.NewMemCacheClient(kube.Discovery())
		return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(known), known, nil)
	})}, nil
}

// hints says whether `kubectl get` may print what is wanted. What it does not understand it
// knows nothing of.
func (e *eye) hints(ctx context.Context, namespace, want string, args ...string) bool {
	kinds, name, format := "", "", ""
	var options metav1.ListOptions
	for _, arg := range args[1:] {
		flag, value, _ := strings.Cut(arg, "=")
		switch {
		case flag == "--output":
			format = value
		case flag == "--selector":
			options.LabelSelector = value
		case strings.HasPrefix(arg, "--"), strings.Contains(arg, "/"), name != "":
			return false
		case kinds == "":
			kinds = arg
		default:
			name = arg
		}
	}
	path, printed := strings.CutPrefix(format, "jsonpath=")
	var out bytes.Buffer
	objects := 0
	for kind := range strings.SplitSeq(kinds, ",") {
		resource, err := e.kinds().ResourceFor(schema.GroupVersionResource{Resource: kind})
		if err != nil {
			return false
		}
		object, err := e.get(ctx, resource, namespace, name, options)
		if err != nil {
			return false
		}
		items, _ := object["items"].([]any)
		objects += len(items)
		if printed && evaluate(&out, path, object) != nil {
			return false
		}
	}
	if printed {
		return out.String() == want
	}
	return objects == len(strings.Fields(want))
}

func evaluate(out *bytes.Buffer, path string, object map[string]any) error {
	p := jsonpath.New("").AllowMissingKeys(true)
	if err := p.Parse(path); err != nil {
		return fmt.Errorf("jsonpath %s: %w", path, err)
	}
	return p.Execute(out, object)
}

func (e *eye) get(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, options metav1.ListOptions) (map[string]any, error) {
	in := e.objects.Resource(resource).Namespace(namespace)
	if name != "" {
		object, err := in.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return object.Object, nil
	}
	list, err := in.List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.UnstructuredContent(), nil
}
