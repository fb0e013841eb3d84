package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coordinationv1ac "k8s.io/client-go/applyconfigurations/coordination/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// The hub's account in a member.
const (
	accountNamespace = "tapp-system"
	accountName      = "tapp-fleet"
	// labelHub is on the Secrets of the account's tokens: the UID of the hub that has it.
	labelHub = v1beta1.GroupName + "/hub-uid"
	// tokenWait is how long the token of a new account may take.
	tokenWait  = 30 * time.Second
	tokenEvery = 100 * time.Millisecond
)

// admit makes the hub's account in a member, with the rights that it needs and no more: in
// these namespaces, or, if there are none, in all.
func admit(ctx context.Context, member *session, namespaces []string, pods bool) error {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	core, rbac := member.core, member.rbac
	if _, err := core.ServiceAccounts(accountNamespace).Apply(ctx, corev1ac.ServiceAccount(accountName, accountNamespace), options); err != nil {
		return fmt.Errorf("making the hub's account: %w", err)
	}
	verbs := []string{"get", "list", "watch"}
	if len(namespaces) == 0 {
		verbs = append(verbs, writeVerbs()...)
	}
	rules := []*rbacv1ac.PolicyRuleApplyConfiguration{
		rbacv1ac.PolicyRule().WithAPIGroups(v1beta1.GroupName).WithResources("advdeployments").WithVerbs(verbs...),
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("namespaces").WithResourceNames(metav1.NamespaceSystem).WithVerbs("get"),
		rbacv1ac.PolicyRule().WithNonResourceURLs("/readyz", "/livez").WithVerbs("get"),
	}
	if pods {
		rules = append(rules, readPods()...)
	}
	role := rbacv1ac.ClusterRole(accountName).WithRules(rules...)
	if _, err := rbac.ClusterRoles().Apply(ctx, role, options); err != nil {
		return fmt.Errorf("making the hub's role: %w", err)
	}
	if err := admitIn(ctx, member, namespaces); err != nil {
		return err
	}
	if err := admitLease(ctx, member); err != nil {
		return err
	}
	if err := admitCharts(ctx, member); err != nil {
		return err
	}
	binding := rbacv1ac.ClusterRoleBinding(accountName).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(accountName)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(accountNamespace).WithName(accountName))
	if _, err := rbac.ClusterRoleBindings().Apply(ctx, binding, options); err != nil {
		return fmt.Errorf("giving the hub its role: %w", err)
	}
	return nil
}

// readPods are the rights to pods, and to know whose they are.
func readPods() []*rbacv1ac.PolicyRuleApplyConfiguration {
	return []*rbacv1ac.PolicyRuleApplyConfiguration{
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods").WithVerbs("get", "list"),
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("pods/log").WithVerbs("get"),
		rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("events").WithVerbs("list"),
		rbacv1ac.PolicyRule().WithAPIGroups("apps").WithResources("replicasets", "deployments", "statefulsets", "daemonsets").WithVerbs("get"),
		rbacv1ac.PolicyRule().WithAPIGroups("apps.tkestack.io").WithResources("tapps").WithVerbs("get"),
	}
}

// admitCharts lets the account write the archives of charts, into a namespace that has
// nothing else: rights go by namespaces, not by labels.
func admitCharts(ctx context.Context, member *session) error {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	const namespace = v1beta1.DefaultChartNamespace
	if _, err := member.core.Namespaces().Apply(ctx, corev1ac.Namespace(namespace), options); err != nil {
		return fmt.Errorf("making the namespace of charts: %w", err)
	}
	rbac := member.rbac
	role := rbacv1ac.Role(accountName, namespace).WithRules(rbacv1ac.PolicyRule().WithAPIGroups("").WithResources("secrets").WithVerbs("list", "create", "patch", "delete"))
	if _, err := rbac.Roles(namespace).Apply(ctx, role, options); err != nil {
		return fmt.Errorf("making the hub's role for charts: %w", err)
	}
	binding := rbacv1ac.RoleBinding(accountName, namespace).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(accountName)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(accountNamespace).WithName(accountName))
	if _, err := rbac.RoleBindings(namespace).Apply(ctx, binding, options); err != nil {
		return fmt.Errorf("giving the hub its role for charts: %w", err)
	}
	return nil
}

// admitLease makes the Lease of the hub that writes to the member, and lets the account
// renew it. The account may make none: no rule can name what is to be made.
func admitLease(ctx context.Context, member *session) error {
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	rbac := member.rbac
	lease := coordinationv1ac.Lease(v1beta1.MemberLease, metav1.NamespaceSystem)
	if _, err := member.coordination.Leases(metav1.NamespaceSystem).Apply(ctx, lease, options); err != nil {
		return fmt.Errorf("making the Lease of the hub that writes here: %w", err)
	}
	role := rbacv1ac.Role(accountName, metav1.NamespaceSystem).WithRules(
		rbacv1ac.PolicyRule().WithAPIGroups(coordinationv1.GroupName).WithResources("leases").WithResourceNames(v1beta1.MemberLease).WithVerbs("get", "update"),
	)
	if _, err := rbac.Roles(metav1.NamespaceSystem).Apply(ctx, role, options); err != nil {
		return fmt.Errorf("making the hub's role of its Lease: %w", err)
	}
	binding := rbacv1ac.RoleBinding(accountName, metav1.NamespaceSystem).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(accountName)).
		WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(accountNamespace).WithName(accountName))
	if _, err := rbac.RoleBindings(metav1.NamespaceSystem).Apply(ctx, binding, options); err != nil {
		return fmt.Errorf("giving the hub the role of its Lease: %w", err)
	}
	return nil
}

// newToken makes a token of the hub's account in a member, and returns the name of its
// Secret, too. The token does not expire: a fleet must not go silent for it. Deleting its
// Secret revokes it.
func newToken(ctx context.Context, member *session, hub types.UID) (token []byte, name string, err error) {
	secrets := member.core.Secrets(accountNamespace)
	made, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: accountName + "-", Namespace: accountNamespace,
			Labels:      map[string]string{labelHub: string(hub)},
			Annotations: map[string]string{corev1.ServiceAccountNameKey: accountName},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return nil, "", fmt.Errorf("asking for a token of the account: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, tokenEvery, tokenWait, true, func(ctx context.Context) (bool, error) {
		found, err := secrets.Get(ctx, made.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		token = found.Data[corev1.ServiceAccountTokenKey]
		return len(token) > 0 && works(ctx, member, token), nil
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, "", fmt.Errorf("the account has no token that works after %s: kube-controller-manager makes it", tokenWait)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the account's token: %w", err)
	}
	return token, made.Name, nil
}

// revokeOthers deletes the tokens that the hub had before, but not those of other hubs.
func revokeOthers(ctx context.Context, member *session, hub types.UID, used string) error {
	secrets := member.core.Secrets(accountNamespace)
	all, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: labels.Set{labelHub: string(hub)}.String()})
	if err != nil {
		return fmt.Errorf("listing the tokens that the hub had before: %w", err)
	}
	var errs []error
	for i := range all.Items {
		if s := &all.Items[i]; s.Name != used {
			err := secrets.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(s.UID))})
			if err != nil && !apierrors.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("revoking the token %s that the hub had before: %w", s.Name, err))
			}
		}
	}
	return errors.Join(errs...)
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
