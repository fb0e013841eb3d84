package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/crd/workload/v1beta1"
	"tkestack.io/tapp/plugin/ownership"
)

// workspace is a connection to the hub, for the AppSets of one namespace.
type workspace struct {
	*session
	*common
	namespace string
}

func (c *common) workspace() (*workspace, error) {
	namespace, _, err := c.Kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	hub, err := c.hub()
	if err != nil {
		return nil, err
	}
	return &workspace{hub, c, namespace}, nil
}

func (w *workspace) get(ctx context.Context, name string) (*v1beta1.AppSet, error) {
	a, err := w.appSets.AppSets(w.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err // it names the object
	}
	a.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet))
	return a, nil
}

// each AppSet of a namespace, page by page.
func each(ctx context.Context, in client.AppSetInterface, do func(*v1beta1.AppSet)) error {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := in.List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing the AppSets: %w", err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// named requires the name of an AppSet.
func (c *common) named(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return c.Usage(errors.New("the name of an AppSet is missing"))
	case len(args) > 1:
		return c.Usage(fmt.Errorf("%q is one argument too many", args[1]))
	}
	return nil
}

// completeAppSets completes the name of an AppSet as the first argument.
func (c *common) completeAppSets(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if len(args) == 0 {
		if w, err := c.workspace(); err == nil { // errors are not shown: nobody could read them while typing
			_ = each(command.Context(), w.appSets.AppSets(w.namespace), func(a *v1beta1.AppSet) { out = append(out, a.Name) })
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// writing are the flags of commands that write.
type writing struct {
	*common
	dryRun, output string
	// adopt is that of ownership.Write.
	adopt []string
	// told are the notes of earlier tries to write.
	told []string
}

const (
	dryRunNone   = "none"
	dryRunServer = "server"
)

func newWriting(all *common, c *cobra.Command) *writing {
	w := &writing{common: all}
	c.Flags().StringVar(&w.dryRun, "dry-run", dryRunNone, "none, or server (the server checks it, and changes nothing)")
	c.Flags().Lookup("dry-run").NoOptDefVal = dryRunServer
	c.Flags().StringVarP(&w.output, "output", "o", "", "Output format: name, json or yaml")
	c.Args = all.named
	c.ValidArgsFunction = all.completeAppSets
	return w
}

func (w *writing) validate() error {
	if w.dryRun != dryRunNone && w.dryRun != dryRunServer {
		return w.Usage(fmt.Errorf("--dry-run is %q; give none or server", w.dryRun))
	}
	if !slices.Contains([]string{"", "name", "json", "yaml"}, w.output) {
		return w.Usage(fmt.Errorf("--output is %q; give name, json or yaml", w.output))
	}
	return nil
}

func (w *writing) dryRuns() []string {
	if w.dryRun == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// patch fields of an AppSet; nil removes one. It fails if the AppSet was replaced by
// another one of its name.
func (w *writing) patch(ctx context.Context, hub *workspace, a *v1beta1.AppSet, fields map[string]any) (*v1beta1.AppSet, error) {
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		fields["metadata"] = metadata
	}
	metadata["uid"] = a.UID
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("writing a patch: %w", err)
	}
	write := ownership.Write[*v1beta1.AppSet]{
		Manager: manager, Adopt: w.adopt, Maps: []string{"updateStrategy", "labels", "meta"}, DryRun: w.dryRun == dryRunServer,
		Tell: w.tellOnce,
		Get:  func(ctx context.Context) (*v1beta1.AppSet, error) { return hub.get(ctx, a.Name) },
		Patch: func(ctx context.Context, kind types.PatchType, patch []byte, dryRun bool) (*v1beta1.AppSet, error) {
			options := metav1.PatchOptions{FieldManager: manager}
			if dryRun {
				options.DryRun = []string{metav1.DryRunAll}
			}
			return hub.appSets.AppSets(hub.namespace).Patch(ctx, a.Name, kind, patch, options)
		},
	}
	out, err := write.Do(ctx, a, types.MergePatchType, data)
	if err != nil {
		return nil, err // it names the object, and says what was wrong
	}
	out.SetGroupVersionKind(v1beta1.SchemeGroupVersion.WithKind(v1beta1.KindAppSet))
	return out, nil
}

// tellOnce writes a note to the error output, unless an earlier try did.
func (w *writing) tellOnce(note string) {
	if !slices.Contains(w.told, note) {
		w.told = append(w.told, note)
		_, _ = fmt.Fprintln(w.Streams.ErrOut, note)
	}
}

// report prints what was done to an object, as kubectl does.
func (w *writing) report(object runtime.Object, done string) error {
	if w.dryRun == dryRunServer {
		done += " (server dry run)"
	}
	var p printers.ResourcePrinter
	switch w.output {
	case "json":
		p = &printers.JSONPrinter{}
	case "yaml":
		p = &printers.YAMLPrinter{}
	default:
		p = &printers.NamePrinter{Operation: done, ShortOutput: w.output == "name"}
	}
	return (&printers.OmitManagedFieldsPrinter{Delegate: p}).PrintObj(object, w.Streams.Out)
}

// write a value as JSON or YAML.
func (c *common) write(value any, output string) error {
	var text []byte
	var err error
	if output == "json" {
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	} else {
		text, err = yaml.Marshal(value)
	}
	if err == nil {
		_, err = c.Streams.Out.Write(text)
	}
	if err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// columns prints a table as kubectl does.
func (c *common) columns(names []string, rows [][]any) error {
	t := &metav1.Table{}
	for _, name := range names {
		t.ColumnDefinitions = append(t.ColumnDefinitions, metav1.TableColumnDefinition{Name: name, Type: "string"})
	}
	for _, cells := range rows {
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(t, c.Streams.Out)
}

// isUnobserved says whether the controller has not looked at the present spec yet.
func isUnobserved(a *v1beta1.AppSet) bool { return a.Status.ObservedGeneration < a.Generation }

// condition about the present generation; nil: none.
func condition(a *v1beta1.AppSet, kind string) *metav1.Condition {
	c := meta.FindStatusCondition(a.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration < a.Generation {
		return nil
	}
	return c
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }
