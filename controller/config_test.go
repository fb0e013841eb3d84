package controller

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // a part of the error; empty: none
	}{
		"defaults":                 {func(*Config) {}, ""},
		"no kinds":                 {func(c *Config) { c.Controllers = nil }, "--controllers is empty; name some of tapp, app"},
		"an unknown kind":          {func(c *Config) { c.Controllers = []string{"tapp", "set"} }, `--controllers names "set"; there are tapp, app`},
		"both kinds":               {func(c *Config) { c.Controllers = Kinds() }, ""},
		"no worker":                {func(c *Config) { c.Workers = 0 }, "--worker is 0"},
		"no requests":              {func(c *Config) { c.KubeAPIQPS = 0 }, "--kube-api-qps is 0"},
		"no burst":                 {func(c *Config) { c.KubeAPIBurst = -1 }, "--kube-api-burst is -1"},
		"nodes lost at once":       {func(c *Config) { c.NodeLostAfter = 0 }, "--node-lost-after"},
		"spread somehow":           {func(c *Config) { c.DefaultTopologySpread = "List" }, `--default-topology-spread is "List"; give None or System`},
		"spread not at all":        {func(c *Config) { c.DefaultTopologySpread = "None" }, ""},
		"tracked by no label":      {func(c *Config) { c.TrackingLabel = "a b" }, `--argocd-instance-label is "a b", which is no label: `},
		"not tracked":              {func(c *Config) { c.TrackingLabel = "" }, ""},
		"renewing too late":        {func(c *Config) { c.Election.RenewDeadline = 15 * time.Second }, "--leader-elect-lease-duration (15s) must be longer"},
		"retrying too late":        {func(c *Config) { c.Election.RetryPeriod = 9 * time.Second }, "--leader-elect-renew-deadline (10s) must be longer"},
		"no lease":                 {func(c *Config) { c.Election.Name = "" }, "--leader-elect-resource-name"},
		"no election, no matter":   {func(c *Config) { c.Election = Election{} }, ""},
		"all that is wrong":        {func(c *Config) { c.Workers, c.KubeAPIBurst = 0, 0 }, "--kube-api-burst"},
		"all that is wrong, again": {func(c *Config) { c.Workers, c.KubeAPIBurst = 0, 0 }, "--worker"},
	} {
		t.Run(name, func(t *testing.T) {
			config := Defaults()
			c.change(&config)
			err := config.validate()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

// TestFlags: the names and defaults that manifests of tkestack/tapp rely on.
func TestFlags(t *testing.T) {
	command := Command("v1.2.3")
	got := map[string]string{}
	for _, f := range command.Flags {
		switch f := f.(type) {
		case *cli.BoolFlag: // its GetValue is empty
			got[f.Name] = strconv.FormatBool(f.Value)
		case cli.DocGenerationFlag:
			got[f.(cli.Flag).Names()[0]] = f.GetValue()
		}
	}
	for name, want := range map[string]string{
		"kubeconfig": "", "master": "", "controllers": "tapp", "create-crd": "true", "delete-pod-after-app-finish": "true",
		"kube-api-qps": "2000", "kube-api-burst": "2500", "worker": "20", "namespace": "",
		"leader-elect": "true", "leader-elect-lease-duration": "15s", "leader-elect-renew-deadline": "10s",
		"leader-elect-retry-period": "1s", "leader-elect-resource-name": "tapp-controller", "leader-elect-resource-namespace": "",
		"node-lost-after": "5m0s", "default-topology-spread": "System", "argocd-instance-label": "app.kubernetes.io/instance", "metrics-address": ":8080", "logging-format": "text", "v": "0", "version": "false",
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("flag --%s: got %q (%v), want %q", name, value, ok, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		out  string
		err  string
	}{
		{[]string{"--version"}, "v1.2.3\n", ""},
		{[]string{"--controllers=set, app"}, "", `--controllers names "set"; there are tapp, app`},
		{[]string{"--worker=0"}, "", "--worker is 0"},
		{[]string{"--logging-format=xml"}, "", "give text or json"},
		{[]string{"-v=-1"}, "", "-v is -1"},
		{[]string{"run"}, "", "\"run\" is no flag; `tapp controller` takes flags only"},
		{[]string{"--kubeconfig=/does/not/exist", "--metrics-address="}, "", "finding the API server"},
	} {
		var out bytes.Buffer
		app := &cli.App{Name: "tapp", Writer: &out, ErrWriter: io.Discard, Commands: []*cli.Command{Command("v1.2.3")}, ExitErrHandler: func(*cli.Context, error) {}}
		err := app.RunContext(t.Context(), append([]string{"tapp", "controller"}, c.args...))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: got error %v, want %q", c.args, err, c.err)
		}
		if c.err == "" && out.String() != c.out {
			t.Errorf("%v: printed %q, want %q", c.args, out.String(), c.out)
		}
	}
}
