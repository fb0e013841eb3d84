package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// The hub's account in a member.
const (
	accountNamespace = "tapp-system"
	accountName      = "tapp-fleet"
	// tokenWait is how long the token of a new account may take.
	tokenWait  = 30 * time.Second
	tokenEvery = 100 * time.Millisecond
)

// admit makes the hub's account in a member, with the rights that it needs and no more,
// and returns its token. The token does not expire: a fleet must not go silent for it.
// Deleting its Secret revokes it.
func admit(ctx context.Context, member *session) ([]byte, error) {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	core, rbac := member.kube.CoreV1(), member.kube.RbacV1()
	if _, err := core.ServiceAccounts(accountNamespace).Apply(ctx, corev1ac.ServiceAccount(accountName, accountNamespace), options); err != nil {
		return nil, fmt.Errorf("making the hub's account: %w", err)
	}
	role := rbacv1ac.ClusterRole(accountName).WithRules(
		rbacv1ac.PolicyRule().WithAPIGroups(v1beta1.GroupName).WithResources("advdeployments").WithVerbs("get", "list", "watch", "create", "patch", "delete"),
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("namespaces").WithResourceNames(metav1.NamespaceSystem).WithVerbs("get"),
		rbacv1ac.PolicyRule().WithNonResourceURLs("/readyz", "/livez").WithVerbs("get"),
	)
	if _, err := rbac.ClusterRoles().Apply(ctx, role, options); err != nil {
		return nil, fmt.Errorf("making the hub's role: %w", err)
	}
	binding := rbacv1ac.ClusterRoleBinding(accountName).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(accountName)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(accountNamespace).WithName(accountName))
	if _, err := rbac.ClusterRoleBindings().Apply(ctx, binding, options); err != nil {
		return nil, fmt.Errorf("giving the hub its role: %w", err)
	}
	secret := corev1ac.Secret(accountName, accountNamespace).WithType(corev1.SecretTypeServiceAccountToken).
		WithAnnotations(map[string]string{corev1.ServiceAccountNameKey: accountName})
	if _, err := core.Secrets(accountNamespace).Apply(ctx, secret, options); err != nil {
		return nil, fmt.Errorf("asking for the account's token: %w", err)
	}
	var token []byte
	err := wait.PollUntilContextTimeout(ctx, tokenEvery, tokenWait, true, func(ctx context.Context) (bool, error) {
		found, err := core.Secrets(accountNamespace).Get(ctx, accountName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		token = found.Data[corev1.ServiceAccountTokenKey]
		return len(token) > 0 && works(ctx, member, token), nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, fmt.Errorf("the account has no token that works after %s: kube-controller-manager makes it", tokenWait)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the account's token: %w", err)
	}
	return token, nil
}

// works says whether a token has the rights that it is for. That of an account which was
// deleted and made anew does not, until it has been replaced.
func works(ctx context.Context, member *session, token []byte) bool {
	config := rest.AnonymousClientConfig(member.config)
	config.BearerToken = string(token)
	as, err := connect(config)
	if err != nil {
		return false
	}
	_, err = as.uid(ctx)
	return err == nil
}
