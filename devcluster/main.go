// Command devcluster starts and stops a real Kubernetes cluster on one machine, built from Go modules.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tkestack.io/tapp/devcluster/cluster"
	"tkestack.io/tapp/devcluster/debian"
	"tkestack.io/tapp/devcluster/process"
	"tkestack.io/tapp/devcluster/progress"
	"tkestack.io/tapp/devcluster/registry"
	"tkestack.io/tapp/devcluster/state"
)

const usage = `devcluster runs a real Kubernetes cluster on this machine, built from Go modules.

usage: devcluster COMMAND [flags]

  up               start the cluster, repair it, or change its number of nodes
  down             end it and remove its traces, also after a crash
  status           show its processes and nodes; fails if something is wrong
  stop COMPONENT   end one: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, storage, registry, node1, ...
  start COMPONENT  start it again
  cut NODE         disconnect a real node from the network; start connects it again
  build            build the programs only
  push ARCHIVE NAME...  make the registry of a cluster with real nodes serve an image archive (OCI layout) by these names
  need PROGRAM     print the path of prometheus or promtool, installing the system's package if needed

flags:
  --dir DIR     state directory (default: .devcluster beside the module's directory)
  --nodes N     up: real nodes, which need Linux and root; "sim" for none (default: as it is, or 2);
                "api" for etcd and the API server only
  --kubernetes V  up and build: the control plane of another version, such as 1.34, for simulated nodes only (default: as it is,
                or the usual one; there is a file for each in the module's directory kubernetes)
  --sim N       up: simulated nodes (default: as it is, or 20)
  --cert-manager  up: with cert-manager, from now on
  --metrics-server  up: with metrics-server on the real nodes, from now on
  --node-grace D  up: how long a node may be silent before it is not ready (default: as it is, or 50s)
`

func main() {
	// System programs are in directories that not every user searches.
	if err := os.Setenv("PATH", process.SearchPath()); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(usage)
	case err != nil:
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		os.Exit(1)
	}
}

// command is what the user asks for.
type command struct {
	name            string
	arguments       []string
	dir, nodes, sim string
	kubernetes      string
	certManager     bool
	metricsServer   bool
	nodeGrace       time.Duration
}

func run(ctx context.Context, args []string) error {
	cmd, err := parse(args)
	if err != nil {
		return err
	}
	switch cmd.name {
	case "need":
		return need(ctx, cmd.arguments[0])
	case "registry": // which `up` starts
		return registry.Serve(ctx, cmd.arguments[0], cmd.arguments[1], cmd.arguments[2])
	}
	module, moduleErr := findModule()
	if cmd.dir == "" {
		if moduleErr != nil {
			return moduleErr
		}
		cmd.dir = filepath.Join(filepath.Dir(module), ".devcluster")
	}
	dir, err := state.Open(cmd.dir)
	if err != nil {
		return err
	}
	c := &cluster.Cluster{Dir: dir, Module: module, Out: progress.New(os.Stdout)}
	switch cmd.name {
	case "up", "build":
		if moduleErr != nil {
			return moduleErr
		}
		if cmd.name == "build" {
			_, err := c.Build(ctx, cmd.kubernetes)
			return err
		}
		size, err := cmd.size(dir)
		if err != nil {
			return err
		}
		return c.Up(ctx, size)
	case "down":
		return c.Down(ctx)
	case "status":
		return c.Status(ctx)
	case "stop":
		return c.Stop(ctx, cmd.arguments[0])
	case "cut":
		return c.Cut(ctx, cmd.arguments[0])
	case "start":
		return c.Start(ctx, cmd.arguments[0])
	case "push":
		return c.Push(ctx, cmd.arguments[0], cmd.arguments[1:])
	}
	return fmt.Errorf("unknown command %q; see devcluster --help", cmd.name)
}

// need prints nothing but the path to the standard output, for scripts.
func need(ctx context.Context, program string) error {
	path, err := debian.Need(ctx, program, func(pkg string) { fmt.Fprintln(os.Stderr, "Installing the Debian package "+pkg) })
	if err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}

// parse accepts flags before and after the words.
func parse(args []string) (command, error) {
	var cmd command
	flags := flag.NewFlagSet("devcluster", flag.ContinueOnError)
	flags.SetOutput(&strings.Builder{})
	flags.StringVar(&cmd.dir, "dir", "", "")
	flags.StringVar(&cmd.nodes, "nodes", "", "")
	flags.StringVar(&cmd.sim, "sim", "", "")
	flags.StringVar(&cmd.kubernetes, "kubernetes", "", "")
	flags.BoolVar(&cmd.certManager, "cert-manager", false, "")
	flags.BoolVar(&cmd.metricsServer, "metrics-server", false, "")
	flags.DurationVar(&cmd.nodeGrace, "node-grace", 0, "")
	var words []string
	for {
		if err := flags.Parse(args); err != nil {
			return cmd, err
		}
		if flags.NArg() == 0 {
			break
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
	if len(words) == 0 || words[0] == "help" {
		return cmd, flag.ErrHelp
	}
	cmd.name, cmd.arguments = words[0], words[1:]
	n := len(cmd.arguments)
	switch cmd.name {
	case "push":
		if n < 2 {
			return cmd, errors.New("push takes an archive and at least one name; see devcluster --help")
		}
	case "registry":
		if n != 3 {
			return cmd, errors.New("registry takes an address, a socket and a directory")
		}
	case "stop", "start", "cut", "need":
		if n != 1 {
			return cmd, fmt.Errorf("%s takes 1 argument; see devcluster --help", cmd.name)
		}
	default:
		if n != 0 {
			return cmd, fmt.Errorf("%s takes no arguments; see devcluster --help", cmd.name)
		}
	}
	return cmd, nil
}

// size is what the flags say, else what the cluster has, else the default.
func (cmd command) size(dir state.Dir) (cluster.Size, error) {
	size := cluster.Size{Nodes: 2, Simulated: 20}
	if record, ok, err := dir.Load(); err != nil {
		return size, err
	} else if ok {
		size = cluster.Size{Kubernetes: record.Kubernetes, Nodes: record.Nodes, Simulated: record.Simulated, APIOnly: record.APIOnly, CertManager: record.CertManager, MetricsServer: record.MetricsServer, NodeGrace: record.NodeGrace}
	}
	size.CertManager = size.CertManager || cmd.certManager
	size.MetricsServer = size.MetricsServer || cmd.metricsServer
	size.Kubernetes = cmp.Or(cmd.kubernetes, size.Kubernetes)
	size.NodeGrace = cmp.Or(cmd.nodeGrace, size.NodeGrace)
	var err error
	switch cmd.nodes {
	case "":
	case "sim":
		size.Nodes, size.APIOnly = 0, false
	case "api":
		size.Nodes, size.Simulated, size.APIOnly = 0, 0, true
	default:
		size.APIOnly = false
		if size.Nodes, err = strconv.Atoi(cmd.nodes); err != nil {
			return size, fmt.Errorf(`--nodes: %q is neither a number nor "sim" or "api"`, cmd.nodes)
		}
	}
	if cmd.sim != "" {
		if size.Simulated, err = strconv.Atoi(cmd.sim); err != nil {
			return size, fmt.Errorf("--sim: %q is not a number", cmd.sim)
		}
	}
	return size, nil
}

const modulePath = "module tkestack.io/tapp/devcluster"

// findModule looks for this module's source at and above the working directory, and above this program.
func findModule() (string, error) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if self, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(self))
		if self, err = filepath.EvalSymlinks(self); err == nil {
			starts = append(starts, filepath.Dir(self))
		}
	}
	for _, dir := range starts {
		for {
			for _, candidate := range []string{dir, filepath.Join(dir, "devcluster")} {
				data, err := os.ReadFile(filepath.Join(candidate, "go.mod"))
				if err == nil && strings.HasPrefix(string(data), modulePath+"\n") {
					return candidate, nil
				}
				if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
					return "", fmt.Errorf("look for the module devcluster: %w", err)
				}
			}
			if parent := filepath.Dir(dir); parent != dir {
				dir = parent
				continue
			}
			break
		}
	}
	return "", errors.New("the source of devcluster is needed: call it from within the checkout")
}
