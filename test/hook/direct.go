package hook

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// direct has the webhooks of manifests be called at a URL instead of at a Service.
func direct(manifests, url string) (string, error) {
	var out strings.Builder
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return out.String(), nil
		} else if err != nil {
			return "", fmt.Errorf("reading what the chart rendered: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return "", fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
		for _, hook := range hooks {
			client, _, _ := unstructured.NestedMap(hook.(map[string]any), "clientConfig") //nolint:forcetypeassert // which the API server would refuse
			path, found, err := unstructured.NestedString(client, "service", "path")
			if err != nil || !found {
				return "", fmt.Errorf("%s %s: a webhook has no path: %w", object.GetKind(), object.GetName(), err)
			}
			delete(client, "service")
			client["url"] = url + path
			hook.(map[string]any)["clientConfig"] = client //nolint:forcetypeassert // as above
		}
		if len(hooks) > 0 {
			object.Object["webhooks"] = hooks
		}
		manifest, err := object.MarshalJSON()
		if err != nil {
			return "", fmt.Errorf("writing %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		out.WriteString("---\n" + string(manifest))
	}
}
