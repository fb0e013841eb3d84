// Package debian finds out which programs of the system are missing for real nodes, and installs them where it can.
package debian

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"tkestack.io/tapp/devcluster/node"
)

// programs that real nodes need, and the packages that have them.
var programs = map[string]string{
	"containerd":              "containerd",
	"containerd-shim-runc-v2": "containerd",
	"runc":                    "runc",
	"ip":                      "iproute2",
	"iptables":                "iptables",
	"nsenter":                 "util-linux",
	"mount":                   "mount",
}

// optional are programs that only some tests need.
var optional = map[string]string{
	"prometheus": "prometheus",
	"promtool":   "prometheus",
}

// Need returns the path of a program that some tests need, and installs its package first where that is possible.
func Need(ctx context.Context, program string, installing func(pkg string)) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	pkg, known := optional[program]
	if !known {
		return "", fmt.Errorf("no program %q to install; there are %s", program, strings.Join(slices.Sorted(maps.Keys(optional)), ", "))
	}
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return "", fmt.Errorf("%s is missing: install the package %s (Debian, as root: apt-get install -y --no-install-recommends %s)", program, pkg, pkg)
	}
	installing(pkg)
	if err := Install(ctx, []string{pkg}); err != nil {
		return "", err
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("the package %s is installed: %w", pkg, err)
	}
	return path, nil
}

// plugins has the CNI plugins, which are not on the search path.
const plugins = "containernetworking-plugins"

// Missing returns the packages to install, sorted.
func Missing() []string {
	var missing []string
	for program, pkg := range programs {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if _, err := node.PluginDir(); err != nil {
		missing = append(missing, plugins)
	}
	slices.Sort(missing)
	return slices.Compact(missing)
}

// Install installs packages as root on Debian and its relatives; elsewhere its error says in one line what to do.
func Install(ctx context.Context, packages []string) error {
	list := strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("install what the Debian packages %s have with this system's package manager, or use --nodes=sim", list)
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("install packages as root: apt-get install -y %s (or use --nodes=sim)", list)
	}
	allow, err := denyServices()
	if err != nil {
		return err
	}
	// Lists may be old or, in an image, absent; when they cannot be fetched, those at hand may still do.
	update := apt(ctx, "update", "-q")
	err = apt(ctx, append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)...)
	if err != nil {
		err = errors.Join(err, update)
	}
	return errors.Join(err, allow())
}

func apt(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

// policy is the file that Debian's packages ask whether they may start a service.
const policy = "/usr/sbin/policy-rc.d"

// denyServices keeps the installation from starting a containerd for the whole machine: our nodes have their own.
func denyServices() (allow func() error, err error) {
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program
	if errors.Is(err, fs.ErrExist) {
		return func() error { return nil }, nil // the machine has its own policy
	}
	if err != nil {
		return nil, fmt.Errorf("keep services from starting: %w", err)
	}
	_, err = f.WriteString("#!/bin/sh\nexit 101\n")
	allow = func() error { return os.Remove(policy) }
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("keep services from starting: %w", err), allow())
	}
	return allow, nil
}
