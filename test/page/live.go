//go:build cluster

package page

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/test/cluster"
)

// rig is a namespace of a real cluster with the controller.
type rig struct{ *cluster.Rig }

func newRig(t *testing.T) *rig {
	t.Helper()
	if err := cluster.ApplyCRDs(t.Context(), "page-test", controller.KindTApp, controller.KindApp); err != nil {
		t.Fatal(err)
	}
	r := &rig{cluster.New(t, "page")}
	r.ForceDeletePods()
	r.Start([]string{controller.KindTApp})
	return r
}

// token of a new service account with these rights in the namespace.
func (r *rig) token(name string, rules ...rbacv1.PolicyRule) string {
	r.Helper()
	ctx := r.Context()
	must := func(err error) {
		r.Helper()
		if err != nil {
			r.Fatal(err)
		}
	}
	_, err := r.Kube.CoreV1().ServiceAccounts(r.NS).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(err)
	if len(rules) > 0 {
		_, err = r.Kube.RbacV1().Roles(r.NS).Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
		must(err)
		_, err = r.Kube.RbacV1().RoleBindings(r.NS).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: r.NS}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{})
		must(err)
	}
	token, err := r.Kube.CoreV1().ServiceAccounts(r.NS).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must(err)
	return token.Status.Token
}

// kubeconfig of a service account with these rights in the namespace: who looks at a
// dashboard. It names the namespace.
func (r *rig) kubeconfig(name string, rules ...rbacv1.PolicyRule) string {
	r.Helper()
	token := r.token(name, rules...)
	config, err := clientcmd.LoadFromFile(r.Kubeconfig)
	if err != nil {
		r.Fatal(err)
	}
	current := config.Contexts[config.CurrentContext]
	current.Namespace = r.NS
	config.AuthInfos[current.AuthInfo] = &clientcmdapi.AuthInfo{Token: token}
	path := filepath.Join(r.TempDir(), name)
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		r.Fatal(err)
	}
	return path
}

// dashboard runs `kubectl tapp dashboard` until the test ends, and returns the address
// that it prints.
func (r *rig) dashboard(kubeconfig string, flags ...string) string {
	r.Helper()
	plugin := filepath.Join(r.TempDir(), "kubectl-tapp")
	if err := os.Symlink(r.Program("tapp"), plugin); err != nil {
		r.Fatal(err)
	}
	cmd := exec.Command(plugin, append([]string{"dashboard", "--kubeconfig", kubeconfig}, flags...)...) //nolint:noctx // it is asked to end
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait())
		if err != nil {
			r.Errorf("the dashboard ended with %v", err)
		}
		if r.Failed() {
			r.Logf("the dashboard said: %s", told.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		r.Fatalf("the dashboard prints no address: %v", err)
	}
	return strings.TrimSpace(line)
}
