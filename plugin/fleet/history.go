package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plan/podset"
)

// version is a content that an AppSet asked for once.
type version struct {
	Revision int64       `json:"revision"`
	Content  string      `json:"content"`
	Versions string      `json:"versions"`
	Created  metav1.Time `json:"created"`
	// Target is what the rollout is about, and Stable what it returns to.
	Target bool `json:"target,omitempty"`
	Stable bool `json:"stable,omitempty"`

	history podset.History
}

func newHistory(all *common) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:               "history APPSET",
		Short:             "List what an AppSet asked for, newest first",
		Args:              all.named,
		ValidArgsFunction: all.completeAppSets,
		RunE: func(c *cobra.Command, args []string) error {
			if output != "" && output != "json" && output != "yaml" {
				return all.Usage(fmt.Errorf("--output is %q; give json or yaml", output))
			}
			w, err := all.workspace()
			if err != nil {
				return err
			}
			a, err := w.get(c.Context(), args[0])
			if err != nil {
				return err
			}
			versions, err := w.versions(c.Context(), a)
			if err != nil {
				return err
			}
			return w.printVersions(a, versions, output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: json or yaml")
	return c
}

// versions of an AppSet, the newest first.
func (w *workspace) versions(ctx context.Context, a *v1beta1.AppSet) ([]version, error) {
	list, err := w.kube.AppsV1().ControllerRevisions(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelAppSetUID + "=" + string(a.UID)})
	if err != nil {
		return nil, fmt.Errorf("listing the revisions: %w", err)
	}
	units, _, _ := podset.Units(a)
	out := []version{}
	for i := range list.Items {
		r := &list.Items[i]
		if r.Labels[v1beta1.LabelRevision] == v1beta1.RevisionRecord {
			continue
		}
		v, err := versionOf(a, units, r)
		if err != nil {
			return nil, err
		}
		out = append(out, *v)
	}
	slices.SortFunc(out, func(a, b version) int { return cmp.Compare(b.Revision, a.Revision) })
	return out, nil
}

func versionOf(a *v1beta1.AppSet, units []podset.Unit, r *appsv1.ControllerRevision) (*version, error) {
	v := &version{Revision: r.Revision, Content: r.Labels[v1beta1.LabelRevision], Created: r.CreationTimestamp}
	if err := json.Unmarshal(r.Data.Raw, &v.history); err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", r.Name, err)
	}
	if rollout := a.Status.Rollout; rollout != nil {
		v.Target, v.Stable = rollout.Revision == v.Content, rollout.Stable == v.Content
	}
	_, then := v.history.As(a, units)
	var versions []string
	for i := range then {
		versions = append(versions, then[i].Version)
	}
	slices.Sort(versions)
	v.Versions = strings.Join(slices.Compact(versions), "/")
	return v, nil
}

func (w *workspace) printVersions(a *v1beta1.AppSet, versions []version, output string) error {
	if output != "" {
		return w.write(versions, output)
	}
	if len(versions) == 0 {
		_, err := fmt.Fprintf(w.Streams.ErrOut, "No revisions of %s are stored.\n", a.Name)
		return err
	}
	var rows [][]any
	for i := range versions {
		v := &versions[i]
		var is []string
		if v.Target {
			is = append(is, "asked for")
		}
		if v.Stable {
			is = append(is, "stable")
		}
		rows = append(rows, []any{strconv.FormatInt(v.Revision, 10), cmp.Or(v.Versions, "-"), v.Content, cmp.Or(strings.Join(is, ", "), "-"), duration.HumanDuration(time.Since(v.Created.Time))})
	}
	return w.columns([]string{"Revision", "Version", "Content", "Is", "Age"}, rows)
}
