package webhook

import "github.com/urfave/cli/v2"

// Flags of the configuration.
func (c *Config) Flags() []cli.Flag {
	return append(c.Clients.Flags(), []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "`path` of a kubeconfig; by default KUBECONFIG, the user's own, or the cluster that this runs in", Destination: &c.Kubeconfig},
		&cli.StringFlag{Name: "master", Usage: "`address` of the API server, instead of the kubeconfig's", Destination: &c.Master},
		&cli.Float64Flag{Name: "kube-api-qps", Usage: "requests a `second` to the API server", Destination: &c.KubeAPIQPS, Value: c.KubeAPIQPS},
		&cli.IntFlag{Name: "kube-api-burst", Usage: "requests at `once` to the API server", Destination: &c.KubeAPIBurst, Value: c.KubeAPIBurst},
		&cli.StringFlag{Name: "listen-address", Usage: "`address` of the admission webhooks, which are served by HTTPS", Destination: &c.ListenAddress, Value: c.ListenAddress},
		&cli.IntFlag{Name: "admission-dry-runs", Usage: "`number` of pods of one review that are tried at a time", Destination: &c.DryRuns, Value: c.DryRuns},
		&cli.StringFlag{Name: "default-topology-spread", Usage: "`None or System`, as the controller has it: how pods are spread that are tried", Destination: &c.DefaultTopologySpread, Value: c.DefaultTopologySpread},
		&cli.IntFlag{Name: "admission-max-reviews", Usage: "`number` of reviews that may be under way; what comes beyond them is answered with 429", Destination: &c.MaxReviews, Value: c.MaxReviews},
		&cli.IntFlag{Name: "admission-max-bytes", Usage: "`bytes` that the reviews under way may have together; what comes beyond them is answered with 429", Destination: &c.MaxReviewBytes, Value: c.MaxReviewBytes},
		&cli.DurationFlag{Name: "admission-shutdown-delay", Usage: "how `long` reviews are still answered at the end, until the API server has learnt of it", Destination: &c.ShutdownDelay, Value: c.ShutdownDelay},
	}...)
}
