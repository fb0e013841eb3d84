package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/plan/view"
)

type get struct {
	*environment
	output   string
	selector string
	all      bool
}

func newGet(e *environment) *cobra.Command {
	g := &get{environment: e}
	c := &cobra.Command{
		Use:   "get [NAME...] [-o wide|json|yaml|name]",
		Short: "List the instances of TApps",
		Long: `List the instances of TApps: their template, images, node and state, since when they are in it, and what holds them
if they are not where the spec wants them.`,
		Example: `  # All instances of the namespace
  kubectl tapp get

  # Those of one TApp, with what the controller says of each
  kubectl tapp get web -o wide`,
		RunE:              func(c *cobra.Command, args []string) error { return g.run(c.Context(), args) },
		ValidArgsFunction: e.completeTApps(noLimit),
	}
	c.Flags().StringVarP(&g.output, "output", "o", "", "Output format: wide, json, yaml or name")
	c.Flags().StringVarP(&g.selector, "selector", "l", "", "Label selector of the TApps")
	c.Flags().BoolVarP(&g.all, "all-namespaces", "A", false, "The TApps of all namespaces")
	e.completeFlag(c, "output", "wide", "json", "yaml", "name")
	return c
}

func (g *get) run(ctx context.Context, names []string) error {
	switch g.output {
	case "", "wide", "json", "yaml", "name":
	default:
		return usageError{fmt.Errorf("--output is %q; give wide, json, yaml or name", g.output)}
	}
	switch {
	case len(names) > 0 && g.selector != "":
		return usageError{errors.New("give names or a selector, not both")}
	case len(names) > 0 && g.all:
		return usageError{errors.New("a TApp cannot be named across all namespaces; give its namespace by -n")}
	}
	s, err := g.connect()
	if err != nil {
		return err
	}
	if g.all {
		s.namespace = metav1.NamespaceAll
	}
	found, err := s.observeAll(ctx, names, g.selector)
	if err != nil {
		return err
	}
	var views []view.Instance
	for _, o := range found {
		g.note(o.unreadNote(o.Plan.Instances))
		for i := range o.Plan.Instances {
			views = append(views, o.View(&o.Plan.Instances[i]))
		}
	}
	return g.print(views, len(names) == 1)
}

// observeAll observes the named TApps, or those that the selector selects.
func (s *session) observeAll(ctx context.Context, names []string, selector string) ([]*observed, error) {
	pods, err := s.pods(ctx, s.namespace)
	if err != nil {
		return nil, err
	}
	var out []*observed
	for _, name := range names {
		t, err := s.get(ctx, name)
		if err != nil {
			return nil, err
		}
		o, err := s.compute(ctx, t, pods)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	if len(names) > 0 {
		return out, nil
	}
	list, err := s.tapps.TApps(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing TApps: %w", err)
	}
	for i := range list.Items {
		o, err := s.compute(ctx, &list.Items[i], pods)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

func (g *get) print(views []view.Instance, one bool) error {
	out := g.streams.Out
	switch g.output {
	case "json", "yaml":
		if views == nil {
			views = []view.Instance{}
		}
		return write(out, g.output, map[string]any{"items": views})
	case "name":
		for _, v := range views {
			if v.Pod != "" {
				_, _ = fmt.Fprintln(out, "pod/"+v.Pod)
			}
		}
		return nil
	}
	if len(views) == 0 {
		where := " in namespace " + g.namespaceName()
		if g.all {
			where = ""
		}
		_, _ = fmt.Fprintf(g.streams.ErrOut, "No instances found%s.\n", where)
		return nil
	}
	return g.grid(views, one).print(out, newPainter(out))
}

func (e *environment) namespaceName() string {
	namespace, _, _ := e.kubeconfig.Namespace() // it was read before
	return namespace
}

// grid of the instances. There is no column TAPP if all are of one.
func (g *get) grid(views []view.Instance, one bool) table {
	wide := g.output == "wide"
	var header, t = []string{}, table{}
	if g.all {
		header = append(header, "NAMESPACE")
	}
	if !one {
		header = append(header, "TAPP")
	}
	header = append(header, "ID", "TEMPLATE", "IMAGE", "NODE", "STATE", "SINCE", "REASON")
	if wide {
		header = append(header, "CURRENT", "AVAILABLE", "RESTARTS", "IP", "WHY")
	}
	t.add(header...)
	now := time.Now()
	for i := range views {
		v := &views[i]
		var row []cell
		if g.all {
			row = append(row, cell{text: v.Namespace})
		}
		if !one {
			row = append(row, cell{text: v.TApp})
		}
		row = append(row, cell{text: v.ID}, cell{text: v.Template}, cell{text: images(v.Images)}, cell{text: orNone(v.Node)},
			cell{string(v.State), colourOf(v.State)}, cell{text: age(v.Since, now)})
		reason, why := v.Reason, v.Why
		if reason == "" && len(v.Next) > 0 {
			reason, why = v.Next[0].Reason, v.Next[0].Why
		}
		if !wide {
			t = append(t, append(row, cell{text: reason}))
			continue
		}
		t = append(t, append(row, cell{text: orNone(reason)}, cell{text: yesNo(v.Current)}, cell{text: yesNo(v.Available)},
			cell{text: strconv.Itoa(int(v.Restarts))}, cell{text: orNone(v.IP)}, cell{text: why}))
	}
	return t
}

// write a value as JSON or YAML.
func write(w io.Writer, format string, value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	if err == nil && format == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", format, err)
	}
	if format == "json" {
		text = append(text, '\n')
	}
	_, err = w.Write(text)
	return err
}
