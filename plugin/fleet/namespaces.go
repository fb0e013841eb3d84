package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// accountParts is the role by which the hub writes AdvDeployments where it may not do so
// everywhere, and its bindings.
const accountParts = accountName + "-parts"

// writeVerbs are those by which the hub changes AdvDeployments. It reads those of all
// namespaces in any case, to find what is left somewhere.
func writeVerbs() []string { return []string{"create", "patch", "delete"} }

// exist is an error if one of the namespaces is missing in the member.
func exist(ctx context.Context, member *session, namespaces []string) error {
	for _, namespace := range namespaces {
		_, err := member.core.Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("it has no namespace %s: make it first, by kubectl create namespace %s", namespace, namespace)
		case err != nil:
			return fmt.Errorf("looking for namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// admitIn lets the hub's account write in these namespaces, and in none that an earlier
// command named.
func admitIn(ctx context.Context, member *session, namespaces []string) error {
	rbac := member.rbac
	options := metav1.ApplyOptions{FieldManager: manager, Force: true}
	if len(namespaces) > 0 {
		role := rbacv1ac.ClusterRole(accountParts).WithRules(
			rbacv1ac.PolicyRule().WithAPIGroups(v1beta1.GroupName).WithResources("advdeployments").WithVerbs(writeVerbs()...))
		if _, err := rbac.ClusterRoles().Apply(ctx, role, options); err != nil {
			return fmt.Errorf("making the hub's role in namespaces: %w", err)
		}
	}
	for _, namespace := range namespaces {
		binding := rbacv1ac.RoleBinding(accountParts, namespace).
			WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(accountParts)).
			WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(accountNamespace).WithName(accountName))
		if _, err := rbac.RoleBindings(namespace).Apply(ctx, binding, options); err != nil {
			return fmt.Errorf("giving the hub its role in namespace %s: %w", namespace, err)
		}
	}
	all, err := rbac.RoleBindings(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", accountParts).String()})
	if err != nil {
		return fmt.Errorf("listing where the hub may write: %w", err)
	}
	var errs []error
	for i := range all.Items {
		b := &all.Items[i]
		if slices.Contains(namespaces, b.Namespace) || b.RoleRef.Name != accountParts {
			continue
		}
		err := rbac.RoleBindings(b.Namespace).Delete(ctx, b.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(b.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("taking the hub's role in namespace %s: %w", b.Namespace, err))
		}
	}
	return errors.Join(errs...)
}
