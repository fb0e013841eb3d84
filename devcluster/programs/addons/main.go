//go:build programs

// Command addons is what a cluster needs beside Kubernetes, in one file: helm, kwok (simulated nodes), coredns,
// certmanager and metrics-server (as pods), crane (the image registry) and storage (volumes). The name by which it is called
// decides; where there is only one name (in an image), the first argument does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	crane "github.com/google/go-containerregistry/cmd/crane/cmd"
	"github.com/google/go-containerregistry/pkg/logs"
	"github.com/spf13/pflag"
	helm "helm.sh/helm/v4/pkg/cmd"
	helmkube "helm.sh/helm/v4/pkg/kube"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwok "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

func main() {
	name := filepath.Base(os.Args[0])
	if name == "addons" && len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		name, os.Args = os.Args[1], os.Args[1:]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, name)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string) error {
	switch name {
	case "coredns":
		coremain.Run()
		return nil
	case "certmanager":
		return runCertManager(ctx)
	case "crane":
		logs.Warn.SetOutput(os.Stderr)
		return crane.Root.ExecuteContext(ctx)
	case "metrics-server":
		return runMetricsServer(ctx)
	case "helm":
		return runHelm(ctx)
	case "kwok":
		return runKwok(ctx)
	case "storage":
		return runStorage(ctx)
	}
	return errors.New("no such program in here")
}

func runHelm(ctx context.Context) error {
	helmkube.ManagedFieldsManager = "helm"
	cmd, err := helm.NewRootCmd(os.Stdout, os.Args[1:], helm.SetupLogging)
	if err != nil {
		return err
	}
	return cmd.ExecuteContext(ctx)
}

// runKwok reads the flags twice, as KWOK's own main does: those that choose logs and configuration come first.
func runKwok(ctx context.Context) error {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ = kwoklog.InitFlags(ctx, flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return err
	}
	cmd := kwok.NewCommand(ctx)
	cmd.PersistentFlags().AddFlagSet(flags)
	return cmd.ExecuteContext(ctx)
}
