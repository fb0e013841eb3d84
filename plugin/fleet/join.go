package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/fleet/kubeconfig"
)

// join registers a cluster.
type join struct {
	*common
	hubKubeconfig, hubContext string
	server                    string
	namespaces                []string
	replace                   bool
	pods                      bool
}

func newJoin(all *common) *cobra.Command {
	j := &join{common: all}
	c := &cobra.Command{
		Use:   "join CLUSTER --context CONTEXT",
		Short: "Register a cluster with the hub",
		Long: `Register a cluster with the hub, under this name.

The common flags, such as --context, name the cluster. The hub is the current context of
the kubeconfig, or what --hub-context and --hub-kubeconfig name. In the cluster an account
is made with the few rights that the hub needs; on the hub a Secret with its kubeconfig.
Again, it renews both, and revokes the token
that the hub had before.

With --namespaces the hub can write in these namespaces alone; an AppSet of another one
says that it is refused. Without it, again, the hub can write in all.`,
		Example: `  # the cluster of the context shanghai, with the hub of the current context
  kubectl tapp fleet join shanghai --context shanghai

  # which lets the hub write in two namespaces alone
  kubectl tapp fleet join shanghai --context shanghai --namespaces shop,pay`,
		Args: all.one,
		RunE: func(c *cobra.Command, args []string) error { return j.run(c.Context(), args[0]) },
	}
	c.Flags().StringVar(&j.hubKubeconfig, "hub-kubeconfig", "", "Path of the hub's kubeconfig; default: the usual one")
	c.Flags().StringVar(&j.hubContext, "hub-context", "", "Context of the hub; default: the current one")
	c.Flags().StringVar(&j.server, "server-address", "", "Address by which the hub reaches the cluster's API server; default: that of the kubeconfig")
	c.Flags().BoolVar(&j.pods, "pods", false, "Let the hub read pods, their events and their logs in the cluster: tapp api shows them")
	c.Flags().StringSliceVar(&j.namespaces, "namespaces", nil, "Namespaces of the cluster in which the hub may write; default: all")
	c.Flags().BoolVar(&j.replace, "replace", false, "Let the cluster take the place of another one that is registered under this name")
	return c
}

func (j *join) run(ctx context.Context, name string) error {
	name = v1beta1.FoldClusterName(name)
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return j.Usage(fmt.Errorf("%q is no name of a cluster: %s", name, strings.Join(problems, "; ")))
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = j.hubKubeconfig
	hub, err := connectBy(clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: j.hubContext}))
	if err != nil {
		return fmt.Errorf("the hub: %w", err)
	}
	member, err := connectBy(j.Kubeconfig)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	c, err := j.check(ctx, name, hub, member)
	if err != nil {
		return err
	}
	if _, err := j.kubeconfigOf(member, []byte("judged before there is one")); err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	if err := exist(ctx, member, j.namespaces); err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	if err := admit(ctx, member, j.namespaces, j.pods); err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	token, tokenName, err := newToken(ctx, member, c.hub)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	text, err := j.kubeconfigOf(member, token)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	if err := j.register(ctx, hub, c, text); err != nil {
		return fmt.Errorf("registering the cluster: %w", err)
	}
	j.say("cluster %s is registered by the Secret %s/%s; its UID is %s", name, j.clusterNamespace, c.object, c.uid)
	if err := revokeOthers(ctx, member, c.hub, tokenName); err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	return nil
}

// candidate is a cluster that can be a member.
type candidate struct {
	// object is the name of the Secret that registers it.
	object string
	// hub, uid and was are the UIDs of the hub, of the cluster, and of the one that was
	// registered under its name before.
	hub, uid, was types.UID
	// replaces is what the registration says of a cluster that was replaced earlier.
	replaces string
}

// register a cluster by a Secret.
func (j *join) register(ctx context.Context, hub *session, c *candidate, kubeconfig []byte) error {
	marks := map[string]string{v1beta1.LabelOwner: v1beta1.OwnerLegacy}
	switch {
	case c.was != "" && c.was != c.uid:
		marks[v1beta1.LabelReplacesUID] = string(c.was)
	case c.replaces != "":
		marks[v1beta1.LabelReplacesUID] = c.replaces
	}
	secret := corev1ac.Secret(c.object, j.clusterNamespace).WithLabels(marks).
		WithAnnotations(map[string]string{v1beta1.AnnotationClusterUID: string(c.uid)}).
		WithData(map[string][]byte{v1beta1.KeyKubeconfig: kubeconfig})
	_, err := hub.core.Secrets(j.clusterNamespace).Apply(ctx, secret, metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// check that the cluster can be a member under this name.
func (j *join) check(ctx context.Context, name string, hub, member *session) (*candidate, error) {
	c := &candidate{object: name}
	var err error
	if c.hub, err = hub.uid(ctx); err != nil {
		return nil, fmt.Errorf("the hub: %w", err)
	}
	if c.uid, err = member.uid(ctx); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", name, err)
	}
	if c.uid == c.hub {
		return nil, fmt.Errorf("cluster %s is the hub itself: name its context by --context, and the hub's by --hub-context. "+
			"For the hub to be a member too, give its name to the chart as fleet.selfCluster", name)
	}
	if err := member.hasAdvDeployments(); err != nil {
		return nil, fmt.Errorf("cluster %s %w", name, err)
	}
	all, err := j.registrations(ctx, hub)
	if err != nil {
		return nil, err
	}
	if r := find(all, name); r != nil {
		if r.configMap != nil {
			return nil, fmt.Errorf("cluster %s is registered by the ConfigMap %s/%s: move it into a Secret first, by kubectl tapp fleet secure %s", name, j.clusterNamespace, r.object, name)
		}
		if r.profile != nil {
			return nil, fmt.Errorf("cluster %s is registered by the ClusterProfile %s/%s already: choose another name", name, j.clusterNamespace, r.object)
		}
		c.object, c.was, c.replaces = r.object, r.uid(), r.meta().GetLabels()[v1beta1.LabelReplacesUID]
	} else if err := j.nameIsFree(ctx, hub, name); err != nil {
		return nil, err
	}
	if c.was != "" && c.was != c.uid && !j.replace {
		return nil, fmt.Errorf("cluster %s is registered with the UID %s, and this one is another, with the UID %s: choose another name, "+
			"or give --replace if it has taken the other's place", name, c.was, c.uid)
	}
	return c, registeredAs(all, name, c.uid)
}

// nameIsFree is an error if the Secret that would register the cluster is somebody else's.
func (j *join) nameIsFree(ctx context.Context, hub *session, name string) error {
	_, err := hub.core.Secrets(j.clusterNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for a Secret of that name: %w", err)
	}
	return fmt.Errorf("the Secret %s/%s registers no cluster, since it has no label %s=%s: it is not overwritten; choose another name", j.clusterNamespace, name, v1beta1.LabelOwner, v1beta1.OwnerLegacy)
}

// registeredAs is an error if a cluster is registered under another name: two parts of an
// AppSet would be one object there.
func registeredAs(all []registration, name string, uid types.UID) error {
	for i := range all {
		if r := &all[i]; r.name != name && r.uid() == uid {
			return fmt.Errorf("the cluster with the UID %s is registered as %s already", uid, r.name)
		}
	}
	return nil
}

func (s *session) hasAdvDeployments() error {
	found, err := s.discovery.ServerResourcesForGroupVersion(v1beta1.SchemeGroupVersion.String())
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("cannot be asked what it serves: %w", err)
	}
	if found != nil {
		for i := range found.APIResources {
			if found.APIResources[i].Name == "advdeployments" {
				return nil
			}
		}
	}
	return errors.New("has no AdvDeployments. Install tapp there first: helm install tapp chart --namespace tapp-system --create-namespace --set controllers.advdeployment.enabled=true")
}

// kubeconfigOf the account in the member, which the hub's controller will use.
func (j *join) kubeconfigOf(member *session, token []byte) ([]byte, error) {
	server := member.config.Host
	if j.server != "" {
		server = j.server
	}
	ca, err := authority(member.config)
	if err != nil {
		return nil, err
	}
	config := api.NewConfig()
	config.Clusters["member"] = &api.Cluster{Server: server, CertificateAuthorityData: ca, TLSServerName: member.config.ServerName}
	config.AuthInfos["hub"] = &api.AuthInfo{Token: string(token)}
	config.Contexts["member"] = &api.Context{Cluster: "member", AuthInfo: "hub"}
	config.CurrentContext = "member"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("writing its kubeconfig: %w", err)
	}
	if _, err := kubeconfig.Judge(text, j.allowLocal); err != nil {
		return nil, fmt.Errorf("the hub could not use its kubeconfig: %w. Give another address by --server-address, or see --allow-local", err)
	}
	return text, nil
}

// authority is the certificate by which a server is known; none: those of the system.
func authority(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading its certificate authority: %w", err)
	}
	return ca, nil
}
