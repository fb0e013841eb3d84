//go:build cluster

// Package install tests TApp as its users get it: the chart, installed by Helm into
// a cluster with cert-manager, from an image in a registry.
//
//	suite.go        what the tests have: the cluster, kubectl, namespaces
//	release.go      installing and removing the chart
//	stale.go        webhooks that an API server read before
//	load.go         admission requests that never stop
//	modes_test.go   the three ways to a certificate
//	life_test.go    upgrade, uninstall, reinstall
//	renewal_test.go certificates that are renewed while requests come in
//	metrics_test.go what Prometheus sees
//	rights_test.go  what is granted, and what is used
//	policies_test.go what is granted, and denied by policies
//	docs_test.go    pages of the documentation, as their readers go through them
//
// The chart has objects that a cluster can have only once, so that the tests run one
// after the other.
package install

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tkestack.io/tapp/test/audit"
	"tkestack.io/tapp/test/cluster"
)

const (
	chartDir      = "../../chart"
	releaseName   = "tapp"
	releaseSpace  = "tapp-system"
	patience      = cluster.Patience
	restricted    = "pod-security.kubernetes.io/enforce"
	imageVariable = "TAPP_IMAGE"
)

// suite is what all tests share. TestMain makes it.
var suite struct {
	*cluster.Cluster
	repository string // of the image, and its tag
	tag        string
	// audit is followed from before the first installation on.
	audit *audit.Log
}

// begin fills the suite from the environment, and makes room for the release.
func begin(ctx context.Context) (end func(context.Context) error, err error) {
	s := &suite
	if s.Cluster, err = cluster.Connect("install-test"); err != nil {
		return nil, err
	}
	var found bool
	if s.repository, s.tag, found = strings.Cut(os.Getenv(imageVariable), ":"); !found {
		return nil, fmt.Errorf("%s names no image, as tapp:v1; it has to be in the cluster's registry", imageVariable)
	}
	if s.audit, err = s.FollowAudit(); err != nil {
		return nil, err
	}
	// Only restricted pods are let in, so that every test is one of that, too.
	_, err = s.Kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: releaseSpace, Labels: map[string]string{restricted: "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create the namespace of the release: %w", err)
	}
	// What an earlier run on this cluster left would not be made anew, and the rights to
	// do so would seem unused.
	if out, err := s.Command(ctx, "", "kubectl", "--namespace", releaseSpace, "delete", "secrets,leases", "--all"); err != nil {
		return nil, fmt.Errorf("clear the namespace of the release: %w\n%s", err, out)
	}
	return uninstall, nil
}

// kubectl must succeed.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := suite.Command(t.Context(), "", "kubectl", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// rig is a namespace with TApps of the release.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	return &rig{cluster.New(t, "install")}
}

// apply a manifest.
func (r *rig) apply(manifest string) {
	r.Helper()
	if out, err := r.tryApply(manifest); err != nil {
		r.Fatalf("%v\n%s\n%s", err, out, manifest)
	}
}

// tryApply applies a manifest, and returns what kubectl prints.
func (r *rig) tryApply(manifest string, args ...string) (string, error) {
	return r.TryKubectlWith(manifest, append([]string{"apply", "--filename", "-"}, args...)...)
}
