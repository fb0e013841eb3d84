package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

func newUndo(all *common) *cobra.Command {
	c := &cobra.Command{
		Use:   "undo APPSET [--to-revision REVISION]",
		Short: "Go back to the stable content, or to another revision",
		Long: `Go back to the content that was stable before the present rollout: all clusters return to it at once, within the budget, and
without gates. With --to-revision, or where the present content is the stable one already, it is a rollout to an older revision, with
the stages and gates of the spec.

podSpec, serviceName, labels and meta become what they were, and image, version, chart and values of the podSets. Clusters, numbers of
instances, claims and the update strategy stay. It fails if the spec changed since it looked.`,
		Example: `  kubectl tapp fleet undo web
  kubectl tapp fleet undo web --to-revision 3`,
	}
	w, to := newWriting(all, c), ""
	w.adopt = []string{"labels", "meta", "serviceName", "podSpec", "clusterTopology"}
	c.Flags().StringVar(&to, "to-revision", "", "Number of a revision, as kubectl tapp fleet history lists them")
	c.RunE = func(c *cobra.Command, args []string) error { return w.undo(c.Context(), args[0], to) }
	return c
}

func (w *writing) undo(ctx context.Context, name, to string) error {
	if err := w.validate(); err != nil {
		return err
	}
	hub, err := w.workspace()
	if err != nil {
		return err
	}
	a, err := hub.get(ctx, name)
	if err != nil {
		return err
	}
	versions, err := hub.versions(ctx, a)
	if err != nil {
		return err
	}
	v, err := chosen(a, versions, to)
	if err != nil {
		return err
	}
	spec, err := specOf(a, &v.History)
	if err != nil {
		return err
	}
	after, err := w.patchUnchanged(ctx, hub, a, spec)
	if err != nil {
		return err
	}
	return w.report(after, fmt.Sprintf("goes back to revision %d (%s)", v.Revision, v.Versions))
}

// patchUnchanged patches the spec of an AppSet if it is still the spec that was read. A status
// that changed since then is no conflict: the controller writes it all the time in a rollout.
func (w *writing) patchUnchanged(ctx context.Context, hub *workspace, read *v1beta1.AppSet, spec map[string]any) (after *v1beta1.AppSet, err error) {
	now := read
	err = retryConflicts(func() error {
		if now == nil {
			if now, err = hub.get(ctx, read.Name); err != nil {
				return err
			}
		}
		if now.UID != read.UID || now.Generation != read.Generation {
			return fmt.Errorf("the spec of %s changed since this command read it; nothing was written: run it again", read.Name)
		}
		after, err = w.patch(ctx, hub, now, map[string]any{"metadata": map[string]any{"resourceVersion": now.ResourceVersion}, "spec": spec})
		now = nil
		return err
	})
	return after, err
}

// retryConflicts writes until there is no conflict, ten times within five seconds.
func retryConflicts(write func() error) error {
	return retry.RetryOnConflict(wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.1}, write)
}

// chosen version: the one that is named, or the stable one, or the one before it.
func chosen(a *v1beta1.AppSet, versions []podset.Version, to string) (*podset.Version, error) {
	units, _, problems := podset.Units(a)
	now := ""
	if len(problems) == 0 {
		now = podset.Revision(units)
	}
	if to != "" {
		number, err := strconv.ParseInt(to, 10, 64)
		for i := range versions {
			if err == nil && versions[i].Revision == number {
				return &versions[i], nil
			}
		}
		return nil, fmt.Errorf("%s has no revision %s: kubectl tapp fleet history %s lists them", a.Name, to, a.Name)
	}
	for i := range versions {
		if versions[i].Stable && versions[i].Content != now {
			return &versions[i], nil
		}
	}
	for i := range versions {
		if versions[i].Content != now {
			return &versions[i], nil
		}
	}
	return nil, errors.New("there is no revision to go back to: " + a.Name + " asked for nothing else that is stored")
}

// specOf the AppSet with the content of a revision, as a merge patch.
func specOf(a *v1beta1.AppSet, h *podset.History) (map[string]any, error) {
	then := a.DeepCopy()
	s := &then.Spec
	s.Labels, s.Meta, s.ServiceName, s.PodSpec = h.Labels, h.Meta, h.ServiceName, h.PodSpec
	s.PodSpec.VolumeClaimTemplates = a.Spec.PodSpec.VolumeClaimTemplates // they may have grown, and cannot shrink
	for c := range s.ClusterTopology.Clusters {
		cluster := &s.ClusterTopology.Clusters[c]
		was := clusterIn(&h.ClusterTopology, cluster.Name)
		if was == nil {
			continue
		}
		cluster.Meta = was.Meta
		for p := range cluster.PodSets {
			is := &cluster.PodSets[p]
			for i := range was.PodSets {
				if old := &was.PodSets[i]; old.Name == is.Name {
					is.Image, is.Version, is.Chart, is.RawValues, is.Meta, is.NodeSelectorTerm = old.Image, old.Version, old.Chart, old.RawValues, old.Meta, old.NodeSelectorTerm
				}
			}
		}
	}
	before, err := json.Marshal(&a.Spec)
	if err != nil {
		return nil, fmt.Errorf("reading the spec: %w", err)
	}
	after, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("reading the revision: %w", err)
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, fmt.Errorf("comparing the revision with the spec: %w", err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(patch, &out); err != nil {
		return nil, fmt.Errorf("comparing the revision with the spec: %w", err)
	}
	return out, nil
}

func clusterIn(t *v1beta1.ClusterTopology, name string) *v1beta1.TargetCluster {
	for i := range t.Clusters {
		if v1beta1.FoldClusterName(t.Clusters[i].Name) == v1beta1.FoldClusterName(name) {
			return &t.Clusters[i]
		}
	}
	return nil
}
