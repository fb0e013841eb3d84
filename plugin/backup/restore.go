package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// restore are the flags of the command `restore`.
type restore struct {
	Options
	file       string
	dryRun     string
	newVolumes bool
	// registrations of clusters are restored, too.
	registrations bool
}

const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
	// maxRefusals are told, and how many there are beside them.
	maxRefusals = 20
)

// NewRestore is the command `restore`.
func NewRestore(o Options) *cobra.Command {
	r := &restore{Options: o}
	c := &cobra.Command{
		Use:   "restore -f FILE",
		Short: "Bring back TApps, AppSets and AdvDeployments from a backup",
		Long: `Bring back TApps, AppSets, AdvDeployments, their history and the claims of TApps from what "kubectl tapp backup" wrote.

What is lost is made again: claims with the volumes that they had, which are taken from nobody; TApps with the ids that ended and the nodes that
instances are tied to; revisions with the new object as their owner. What is there already, and is the same, stays. If anything is there that is
not the same, all of it is told, and nothing is written. A restore that was interrupted is finished by another one.

No instance starts before all of its TApp is back, and nothing is written to a cluster before all of an AppSet is. Then its parts there are taken
over as they are; those that are newer than the backup stay until a human has looked. The controllers may run meanwhile.`,
		Example: "  kubectl create namespace shop\n  kubectl tapp restore -f shop.yaml --dry-run\n  kubectl tapp restore -f shop.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case r.file == "":
				return o.Usage(errors.New("-f is missing: the file that kubectl tapp backup wrote, or - for the standard input"))
			case r.dryRun != dryRunNone && r.dryRun != dryRunClient && r.dryRun != dryRunServer:
				return o.Usage(fmt.Errorf("--dry-run is %q; give none, client or server", r.dryRun))
			}
			return r.run(c.Context())
		},
	}
	c.Flags().StringVarP(&r.file, "filename", "f", "", "File of the backup; - is the standard input")
	c.Flags().StringVar(&r.dryRun, "dry-run", dryRunNone, "none, client (what is missing is told, and nothing is sent) or server (the server checks what would be made)")
	c.Flags().Lookup("dry-run").NoOptDefVal = dryRunClient
	c.Flags().BoolVar(&r.registrations, flagRegistrations, true, "Restore the registrations of clusters, where the file has them")
	c.Flags().BoolVar(&r.newVolumes, "new-volumes", false, "Claims whose volumes are gone get new ones, which are empty")
	return c
}

func (r *restore) run(ctx context.Context) error {
	in := r.Streams.In
	if r.file != "-" {
		file, err := os.Open(r.file)
		if err != nil {
			return fmt.Errorf("reading the backup: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = io.Reader(file)
	}
	documents, err := decode(in)
	if err != nil {
		return fmt.Errorf("reading the backup: %w", err)
	}
	if !r.registrations {
		documents = slices.DeleteFunc(documents, isRegistration)
	}
	cluster, err := r.Connect()
	if err != nil {
		return err
	}
	if err := r.compareHub(ctx, cluster, documents); err != nil {
		return err
	}
	p, err := look(ctx, cluster, documents, r.newVolumes)
	if err != nil {
		return err
	}
	if refused := p.refused(); len(refused) > 0 {
		for i, text := range refused {
			if i == maxRefusals {
				_, _ = fmt.Fprintf(r.Streams.ErrOut, "and %d more\n", len(refused)-i)
				break
			}
			_, _ = fmt.Fprintln(r.Streams.ErrOut, r.Clean(text))
		}
		return fmt.Errorf("nothing was restored, because %d of %d objects cannot be", len(refused), len(documents))
	}
	w := &writer{cluster: cluster, report: r.report}
	switch r.dryRun {
	case dryRunClient:
		for _, i := range p.items {
			r.report(i, i.word())
		}
		return nil
	case dryRunServer:
		w.dryRun = []string{metav1.DryRunAll}
	}
	return w.write(ctx, p)
}

// compareHub warns where AppSets come to another hub: their parts are marked with the former.
func (r *restore) compareHub(ctx context.Context, c *Cluster, documents []*unstructured.Unstructured) error {
	for _, u := range documents {
		was := u.GetAnnotations()[annotationHub]
		if was == "" {
			continue
		}
		now, err := c.uid(ctx)
		if err != nil {
			return fmt.Errorf("asking which cluster this is: %w", err)
		}
		if now != "" && now != was {
			_, _ = fmt.Fprintf(r.Streams.ErrOut, "Warning: the AppSets are from another hub, with the UID %s. TApp takes their parts over if the chart's value fleet.id is what it was there; that UID, if it was empty\n", r.Clean(was))
		}
		return nil
	}
	return nil
}

// report what was done to an object, as kubectl does.
func (r *restore) report(i *item, word string) {
	switch r.dryRun {
	case dryRunClient:
		word += " (dry run)"
	case dryRunServer:
		word += " (server dry run)"
	}
	_, _ = fmt.Fprintf(r.Streams.Out, "%s %s\n", r.Clean(nameOf(i.document)), word)
}
