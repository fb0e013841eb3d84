package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/workload/v1beta1"
)

// page is how many AppSets are asked for at a time.
const page = 500

// clusterInfo is what the hub's objects say of a cluster.
type clusterInfo struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	// State is what the controller wrote last into the status of an AppSet that names the
	// cluster; empty: none does.
	State   string `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
	UID     string `json:"uid,omitempty"`
	AppSets int    `json:"appSets"`
	// Registered is when the registration was made.
	Registered metav1.Time `json:"registered"`
	told       time.Time
}

func newClusters(all *common) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster"},
		Short:   "List the registered clusters",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch output {
			case "", "wide", "name", "json", "yaml":
			default:
				return all.Usage(fmt.Errorf("--output is %q; give wide, name, json or yaml", output))
			}
			hub, err := all.hub()
			if err != nil {
				return err
			}
			clusters, err := all.clusters(c.Context(), hub)
			if err != nil {
				return err
			}
			return all.print(clusters, output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "Output format: wide, name, json or yaml")
	return c
}

// clusters that are registered, by name, with what AppSets say of them.
func (c *common) clusters(ctx context.Context, hub *session) ([]clusterInfo, error) {
	all, err := c.registrations(ctx, hub)
	if err != nil {
		return nil, err
	}
	out := make([]clusterInfo, 0, len(all))
	byName := map[string]int{}
	for i := range all {
		r := &all[i]
		info := clusterInfo{Name: r.name, Source: r.kind() + "/" + r.object, UID: string(r.uid()), Registered: r.meta().GetCreationTimestamp()}
		switch r.value(v1beta1.KeyStatus) {
		case "", "Ready", "true":
		default:
			info.State = string(v1beta1.ClusterMaintaining)
		}
		if _, twice := byName[r.name]; twice {
			info.Message = "not used: the cluster is registered twice"
		} else {
			byName[r.name] = len(out)
		}
		out = append(out, info)
	}
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := hub.appSets.AppSets(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the AppSets: %w", err)
		}
		for i := range list.Items {
			learn(out, byName, &list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b clusterInfo) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// learn what the status of an AppSet says of clusters. The newest one counts.
func learn(clusters []clusterInfo, byName map[string]int, a *v1beta1.AppSet) {
	told := a.CreationTimestamp.Time
	if a.Status.LastUpdateTime != nil {
		told = a.Status.LastUpdateTime.Time
	}
	for i := range a.Status.AggrStatus.Clusters {
		said := &a.Status.AggrStatus.Clusters[i]
		n, ok := byName[v1beta1.FoldClusterName(said.Name)]
		if !ok {
			continue
		}
		info := &clusters[n]
		info.AppSets++
		if info.told.IsZero() || told.After(info.told) {
			info.told, info.State, info.Message = told, string(said.State), ""
			if said.State != v1beta1.ClusterReady {
				info.Message = said.Message
			}
		}
	}
}

func (c *common) print(clusters []clusterInfo, output string) error {
	var text []byte
	var err error
	switch output {
	case "json":
		text, err = json.MarshalIndent(clusters, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(clusters)
	case "name":
		for i := range clusters {
			text = append(text, clusters[i].Name+"\n"...)
		}
	default:
		return c.table(clusters, output == "wide")
	}
	if err != nil {
		return fmt.Errorf("writing the clusters: %w", err)
	}
	_, err = c.Streams.Out.Write(text)
	return err
}

func (c *common) table(clusters []clusterInfo, wide bool) error {
	if len(clusters) == 0 {
		_, err := fmt.Fprintf(c.Streams.ErrOut, "No clusters are registered in namespace %s. To register one: kubectl tapp fleet join CLUSTER --context CONTEXT\n", c.clusterNamespace)
		return err
	}
	t := &metav1.Table{}
	for _, name := range []string{"Name", "State", "Source", "AppSets", "Age"} {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	if wide {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: "UID", Type: "string"}, metav1.TableColumnDefinition{Name: "Message", Type: "string"})
	}
	for i := range clusters {
		one := &clusters[i]
		cells := []any{one.Name, cmp.Or(one.State, "-"), one.Source, strconv.Itoa(one.AppSets), duration.HumanDuration(time.Since(one.Registered.Time))}
		if wide {
			cells = append(cells, cmp.Or(one.UID, "-"), cmp.Or(one.Message, "-"))
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, c.Streams.Out)
}
