package fleet

import (
	"cmp"
	"context"
	"fmt"
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
func (w *workspace) versions(ctx context.Context, a *v1beta1.AppSet) ([]podset.Version, error) {
	revisions, err := w.revisions(ctx, a)
	if err != nil {
		return nil, err
	}
	return podset.VersionsOf(a, revisions)
}

func (w *workspace) revisions(ctx context.Context, a *v1beta1.AppSet) ([]appsv1.ControllerRevision, error) {
	list, err := w.apps.ControllerRevisions(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: v1beta1.LabelAppSetUID + "=" + string(a.UID)})
	if err != nil {
		return nil, fmt.Errorf("listing the revisions: %w", err)
	}
	return list.Items, nil
}

func (w *workspace) printVersions(a *v1beta1.AppSet, versions []podset.Version, output string) error {
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
