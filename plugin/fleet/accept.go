package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// accept has a cluster take the place of another one.
type accept struct {
	*common
	yes bool
}

func newAccept(all *common) *cobra.Command {
	a := &accept{common: all}
	c := &cobra.Command{
		Use:   "accept CLUSTER",
		Short: "Accept that another cluster answers under this name",
		Long: `Accept that another cluster answers under this name.

A cluster is known by the UID of its namespace kube-system. Where another one answers, as
after it was rebuilt, nothing is written to it until this command accepts it. AppSets then
fill it as one that has nothing of theirs.`,
		Args: all.one,
		RunE: func(c *cobra.Command, args []string) error { return a.run(c.Context(), args[0]) },
	}
	c.Flags().BoolVarP(&a.yes, "yes", "y", false, "Do not ask")
	return c
}

var errDeclined = errors.New("nothing was changed")

func (a *accept) run(ctx context.Context, name string) error {
	hub, err := a.hub()
	if err != nil {
		return err
	}
	all, err := a.registrations(ctx, hub)
	if err != nil {
		return err
	}
	r := find(all, name)
	if r == nil {
		return fmt.Errorf("no cluster %s is registered in namespace %s", name, a.clusterNamespace)
	}
	was := r.uid()
	uid, server, err := a.answering(ctx, r)
	if err != nil {
		return err
	}
	switch {
	case r.profile != nil && was == "":
		a.say("cluster %s is registered by the ClusterProfile %s/%s, and the one that answers next is taken for it", r.name, a.clusterNamespace, r.object)
		return nil
	case was == uid:
		a.say("cluster %s is the one that was registered, with the UID %s", r.name, uid)
		return nil
	}
	if err := registeredAs(all, r.name, uid); err != nil {
		return err
	}
	if err := a.ask(r, uid, server); err != nil {
		return err
	}
	if err := a.keep(ctx, hub, r, uid); err != nil {
		return fmt.Errorf("accepting the cluster: %w", err)
	}
	if uid == "" {
		a.say("cluster %s is the one that answers next", r.name)
		return nil
	}
	a.say("cluster %s is the one with the UID %s from now on", r.name, uid)
	return nil
}

// answering is the UID of the cluster that answers, and where. By a ClusterProfile only the
// hub's controller gets there, which has the programs that make credentials.
func (a *accept) answering(ctx context.Context, r *registration) (uid types.UID, server string, err error) {
	if r.profile != nil {
		return "", "", nil
	}
	member, err := a.member(r)
	if err != nil {
		return "", "", err
	}
	if uid, err = member.uid(ctx); err != nil {
		return "", "", fmt.Errorf("cluster %s: %w", r.name, err)
	}
	return uid, member.config.Host, nil
}

// ask whether it is right.
func (a *accept) ask(r *registration, uid types.UID, server string) error {
	if a.yes {
		return nil
	}
	a.say("Registered as %s is the cluster with the UID %s.", r.name, r.uid())
	if uid == "" {
		a.say("What answers by the ClusterProfile %s is another one, or will be.", r.object)
	} else {
		a.say("What answers at %s has the UID %s.", server, uid)
	}
	_, _ = fmt.Fprint(a.Streams.Out, "AppSets will be installed there anew. Is that right? [y/N] ")
	answer, _ := bufio.NewReader(a.Streams.In).ReadString('\n')
	if !strings.EqualFold(strings.TrimSpace(answer), "y") {
		return errDeclined
	}
	return nil
}

// keep the UID with the registration; an empty one takes it off, and the hub keeps that of
// who answers next.
func (a *accept) keep(ctx context.Context, hub *session, r *registration, uid types.UID) error {
	options := metav1.PatchOptions{FieldManager: manager}
	if r.profile != nil {
		return a.keepWithProfile(ctx, hub, r, uid, options)
	}
	patch, err := keeping(r.meta(), uid)
	if err != nil {
		return err
	}
	if r.secret != nil {
		_, err = hub.core.Secrets(a.clusterNamespace).Patch(ctx, r.object, types.MergePatchType, patch, options)
	} else {
		_, err = hub.core.ConfigMaps(a.clusterNamespace).Patch(ctx, r.object, types.MergePatchType, patch, options)
	}
	return err
}

// keepWithProfile writes to a ClusterProfile as it was when the user was asked. Its status may be
// another one meanwhile: cluster managers write it every few seconds.
func (a *accept) keepWithProfile(ctx context.Context, hub *session, r *registration, uid types.UID, options metav1.PatchOptions) error {
	profiles, now := hub.objects.Resource(v1beta1.ClusterProfiles()).Namespace(a.clusterNamespace), r.profile
	return retryConflicts(func() (err error) {
		if now == nil {
			if now, err = profiles.Get(ctx, r.object, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		asked := r.profile
		if now.GetUID() != asked.GetUID() || now.GetGeneration() != asked.GetGeneration() || !maps.Equal(now.GetAnnotations(), asked.GetAnnotations()) {
			return fmt.Errorf("the ClusterProfile %s changed meanwhile; nothing was written: run it again", r.object)
		}
		patch, err := keeping(now, uid)
		if err == nil {
			_, err = profiles.Patch(ctx, r.object, types.MergePatchType, patch, options)
		}
		now = nil
		return err
	})
}

// keeping is the patch of a registration at the version that was read.
func keeping(of metav1.Object, uid types.UID) ([]byte, error) {
	kept := map[string]any{v1beta1.AnnotationClusterUID: nil}
	if uid != "" {
		kept[v1beta1.AnnotationClusterUID] = uid
	}
	metadata := map[string]any{"resourceVersion": of.GetResourceVersion(), "annotations": kept}
	if was := of.GetAnnotations()[v1beta1.AnnotationClusterUID]; was != "" {
		metadata["labels"] = map[string]any{v1beta1.LabelReplacesUID: was}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	return patch, nil
}
