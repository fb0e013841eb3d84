package controller

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"tkestack.io/tapp/process"
)

// Command is `tapp controller`. Flags that tkestack/tapp had keep their names.
func Command(version string) *cli.Command {
	c := Defaults()
	c.Version = version
	return process.Command(process.Spec{
		Name: "controller", Usage: "run the controllers", Version: version, Flags: c.Flags(),
		Run: func(ctx context.Context) error { return Run(ctx, c) },
	})
}

// Flags fill the configuration.
func (c *Config) Flags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "`path` of a kubeconfig; by default KUBECONFIG, the user's own, or the cluster that this runs in", Destination: &c.Kubeconfig},
		&cli.StringFlag{Name: "master", Usage: "`address` of the API server, instead of the kubeconfig's", Destination: &c.Master},
		&cli.GenericFlag{Name: "controllers", Usage: "`kinds` to look after, with commas between them: " + strings.Join(namesOf(c.kinds), ", "), Value: (*process.Names)(&c.Controllers)},
		&cli.BoolFlag{Name: "enable-master", Usage: "look after AppSets; without --controllers, after these alone", Action: c.choose},
		&cli.BoolFlag{Name: "enable-worker", Usage: "look after AdvDeployments; without --controllers, after these alone", Action: c.choose},
		&cli.BoolFlag{Name: "create-crd", Usage: "apply the CustomResourceDefinitions of these kinds at the start", Destination: &c.CreateCRD, Value: c.CreateCRD},
		&cli.GenericFlag{Name: "accept-schema", Usage: "`digests` of served schemas that lost fields which objects use, with commas between them: their loss is accepted", Value: (*process.Names)(&c.AcceptedSchemas)},
		&cli.BoolFlag{Name: "delete-pod-after-app-finish", Usage: "keep ended pods until all instances of a TApp have ended, and then delete them; false deletes each at once", Destination: &c.DeletePodAfterAppFinish, Value: c.DeletePodAfterAppFinish},
		&cli.DurationFlag{Name: "node-lost-after", Usage: "`duration` after which a node that is not ready counts as lost, for TApps with forceDeletePod", Destination: &c.NodeLostAfter, Value: c.NodeLostAfter},
		&cli.StringFlag{Name: "default-topology-spread", Usage: "`None or System`: whether new pods of TApps without defaultTopologySpread are spread over nodes and zones as those of a StatefulSet are", Destination: &c.DefaultTopologySpread, Value: c.DefaultTopologySpread},
		&cli.StringFlag{Name: "argocd-instance-label", Usage: "`label` by which Argo CD tracks objects (application.instanceLabelKey): claims of TApps that have it are annotated, so that they are not pruned; empty: none", Destination: &c.TrackingLabel, Value: c.TrackingLabel},
		&cli.Float64Flag{Name: "kube-api-qps", Usage: "`rate` of requests to the API server, per second", Destination: &c.KubeAPIQPS, Value: c.KubeAPIQPS},
		&cli.IntFlag{Name: "kube-api-burst", Usage: "`number` of requests to the API server at once", Destination: &c.KubeAPIBurst, Value: c.KubeAPIBurst},
		&cli.IntFlag{Name: "worker", Usage: "`number` of objects of a kind that are worked on at a time", Destination: &c.Workers, Value: c.Workers},
		&cli.StringFlag{Name: "namespace", Usage: "look after the objects of this `namespace` only", Destination: &c.Namespace},
		&cli.StringFlag{Name: "metrics-address", Usage: "`address` of /metrics, /healthz and /readyz; empty serves none", Destination: &c.MetricsAddress, Value: c.MetricsAddress},
	}, slices.Concat(c.Fleet.flags(), c.Charts.flags(), c.Election.flags())...)
}

func (f *FleetConfig) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cluster-namespace", Usage: "`namespace` in which the clusters of AppSets are registered; by default the one that this runs in", Destination: &f.ClusterNamespace, Value: f.ClusterNamespace},
		&cli.StringFlag{Name: "fleet-id", Usage: "`id` of this hub on what it writes into its clusters, a label value; by default the UID of its namespace kube-system. A hub that takes the place of another one has the other's", Destination: &f.ID, Value: f.ID},
		&cli.StringFlag{Name: "self-cluster", Usage: "`name` of the hub as one of its own clusters; by default it is none", Destination: &f.SelfCluster, Value: f.SelfCluster},
		&cli.StringFlag{Name: "cluster-profile-providers", Usage: "`file` of the programs that make credentials for the clusters of ClusterProfiles (KEP-5339); without it, ClusterProfiles are not used", Destination: &f.ProvidersFile, Value: f.ProvidersFile},
		&cli.BoolFlag{Name: "no-member-lease", Usage: "hold no Lease in the clusters of AppSets: one write less in 10 s for each; only where there is no second hub of this --fleet-id", Destination: &f.NoMemberLease, Value: f.NoMemberLease},
		&cli.BoolFlag{Name: "allow-local-clusters", Usage: "let clusters have loopback and link-local addresses; whoever registers clusters can reach this host by them", Destination: &f.AllowLocal, Value: f.AllowLocal},
	}
}

func (c *ChartConfig) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "charts-account", Usage: "`name` of the ServiceAccount, in the namespace of each release, by whose rights the objects of charts are written", Destination: &c.Account, Value: c.Account},
		&cli.BoolFlag{Name: "charts-anywhere", Usage: "let charts have objects of the cluster and of other namespaces, as far as that ServiceAccount may", Destination: &c.Anywhere, Value: c.Anywhere},
		&cli.StringFlag{Name: "charts-namespace", Usage: "`namespace` of the Secrets with the archives of charts, on the hub and in its clusters", Destination: &c.Namespace, Value: c.Namespace},
		&cli.StringFlag{Name: "chart-repositories", Usage: "`path` of a repositories file in Helm's format, with the repositories that charts name by alias, and their credentials", Destination: &c.Repositories},
		&cli.BoolFlag{Name: "allow-chart-urls", Usage: "let charts come from hosts that no repository names", Destination: &c.AllowURLs},
		&cli.BoolFlag{Name: "allow-private-charts", Usage: "let charts come from private, loopback and link-local addresses", Destination: &c.AllowPrivate},
	}
}

// choose the kinds of --enable-master and --enable-worker, which the original systems
// have: beside those of --controllers if that is given, and alone otherwise.
func (c *Config) choose(flags *cli.Context, _ bool) error {
	var kinds []string
	if flags.IsSet("controllers") {
		kinds = c.Controllers
	}
	for _, f := range []struct{ name, kind string }{{"enable-master", KindAppSet}, {"enable-worker", KindAdvDeployment}} {
		if flags.Bool(f.name) && !slices.Contains(kinds, f.kind) {
			kinds = append(kinds, f.kind)
		}
	}
	if len(kinds) > 0 {
		c.Controllers = kinds
	}
	return nil
}

func (e *Election) flags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "leader-elect", Usage: "work only while holding the Lease; needed for more than one replica", Destination: &e.Enabled, Value: e.Enabled},
		&cli.DurationFlag{Name: "leader-elect-lease-duration", Usage: "`duration` for which the others wait for a leader that is silent", Destination: &e.LeaseDuration, Value: e.LeaseDuration},
		&cli.DurationFlag{Name: "leader-elect-renew-deadline", Usage: "`duration` for which a leader tries to renew the Lease before it stops working", Destination: &e.RenewDeadline, Value: e.RenewDeadline},
		&cli.DurationFlag{Name: "leader-elect-retry-period", Usage: "`duration` between tries", Destination: &e.RetryPeriod, Value: e.RetryPeriod},
		&cli.StringFlag{Name: "leader-elect-resource-name", Usage: "`name` of the Lease", Destination: &e.Name, Value: e.Name},
		&cli.StringFlag{Name: "leader-elect-resource-namespace", Usage: "`namespace` of the Lease; by default the one that this runs in, or kube-system", Destination: &e.Namespace, Value: e.Namespace},
	}
}
