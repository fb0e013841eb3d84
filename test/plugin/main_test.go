//go:build cluster

// Package plugin tests `kubectl tapp` as users have it: the program itself, under
// its two names, against a real API server and the real controller, on simulated
// nodes. Each file of testdata is a script in a namespace of its own.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"tkestack.io/tapp/controller"
	"tkestack.io/tapp/crd/client"
	"tkestack.io/tapp/test/cluster"
)

// patient is how long anything may take; nothing waits longer than it has to.
const patient = time.Minute

// suite is what the tests share.
var suite struct {
	*cluster.Cluster
	tapps *client.Client
	// path has the plugin and kubectl in front.
	path string
}

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"terminal": terminal})
}

// tests are the tests of the package with what they share.
type tests struct{ m *testing.M }

func (t tests) Run() int {
	code, err := run(t.m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plugin tests:", err)
		return 1
	}
	return code
}

func run(m *testing.M) (code int, err error) {
	if err := connect(); err != nil {
		return 0, err
	}
	bin, err := os.MkdirTemp("", "kubectl-tapp-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	if err := install(bin); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx, theController()) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	if err := ready(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

func connect() (err error) {
	if suite.Cluster, err = cluster.Connect("plugin-test"); err != nil {
		return err
	}
	suite.tapps, err = client.New(suite.Config)
	return err
}

// install the plugin as a user does: the program under two more names.
func install(dir string) error {
	program := os.Getenv("TAPP_BIN")
	if program == "" {
		return errors.New("TAPP_BIN names no tapp program: run these tests by `make plugin-test`")
	}
	for _, name := range []string{"kubectl-tapp", "kubectl_complete-tapp"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	suite.path = dir + string(filepath.ListSeparator) + filepath.Dir(suite.Program("kubectl")) +
		string(filepath.ListSeparator) + os.Getenv("PATH")
	return nil
}

func theController() controller.Config {
	c := controller.Defaults()
	c.REST, c.MetricsAddress, c.Version, c.CreateCRD = suite.Config, "", "plugin-test", true
	c.Election.Enabled = false
	c.Registry = prometheus.NewRegistry()
	return c
}

// ready waits until the API server knows TApps.
func ready(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patient, true, func(ctx context.Context) (bool, error) {
		_, last = suite.tapps.TApps("default").List(ctx, metav1.ListOptions{})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the API server serves no TApps: %w", last)
	}
	return nil
}
