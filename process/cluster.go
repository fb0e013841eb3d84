package process

import (
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// FindAPIServer says where the API server is: given is taken if it is not nil, then
// the kubeconfig of that path, and without one the KUBECONFIG variable, the user's
// own, or the cluster that this runs in. master replaces the address that a
// kubeconfig has.
func FindAPIServer(given *rest.Config, kubeconfig, master string) (*rest.Config, error) {
	if given != nil {
		return rest.CopyConfig(given), nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server = master
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	return cfg, nil
}

// Introduce has the requests of a configuration say which command of which version
// sends them, and prefer protobuf.
func Introduce(cfg *rest.Config, version, command string) {
	cfg.UserAgent = fmt.Sprintf("tapp/%s (%s/%s) %s", version, goruntime.GOOS, goruntime.GOARCH, command)
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	cfg.ContentType = runtime.ContentTypeProtobuf
}

// PodNamespace is the namespace of the pod that this runs in. Outside of a pod it is
// an error.
func PodNamespace() (string, error) {
	const mounted = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	text, err := os.ReadFile(mounted)
	if err != nil {
		return "", err
	}
	namespace := strings.TrimSpace(string(text))
	if namespace == "" {
		return "", errors.New(mounted + " is empty")
	}
	return namespace, nil
}
