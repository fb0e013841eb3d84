package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	member, err := a.member(r)
	if err != nil {
		return err
	}
	uid, err := member.uid(ctx)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", r.name, err)
	}
	was := r.uid()
	if was == uid {
		a.say("cluster %s is the one that was registered, with the UID %s", r.name, uid)
		return nil
	}
	if err := registeredAs(all, r.name, uid); err != nil {
		return err
	}
	if !a.yes {
		a.say("Registered as %s is the cluster with the UID %s.", r.name, was)
		a.say("What answers at %s has the UID %s.", member.config.Host, uid)
		_, _ = fmt.Fprint(a.Streams.Out, "AppSets will be installed there anew. Is that right? [y/N] ")
		answer, _ := bufio.NewReader(a.Streams.In).ReadString('\n')
		if !strings.EqualFold(strings.TrimSpace(answer), "y") {
			return errDeclined
		}
	}
	metadata := map[string]any{"resourceVersion": r.meta().GetResourceVersion(), "annotations": map[string]any{v1beta1.AnnotationClusterUID: uid}}
	if was != "" {
		metadata["labels"] = map[string]any{v1beta1.LabelReplacesUID: was}
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("writing a patch: %w", err)
	}
	options := metav1.PatchOptions{FieldManager: manager}
	if r.secret != nil {
		_, err = hub.kube.CoreV1().Secrets(a.clusterNamespace).Patch(ctx, r.object, types.MergePatchType, patch, options)
	} else {
		_, err = hub.kube.CoreV1().ConfigMaps(a.clusterNamespace).Patch(ctx, r.object, types.MergePatchType, patch, options)
	}
	if err != nil {
		return fmt.Errorf("accepting the cluster: %w", err)
	}
	a.say("cluster %s is the one with the UID %s from now on", r.name, uid)
	return nil
}
