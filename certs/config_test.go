package certs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

func TestConfigThatIsOfNoUse(t *testing.T) {
	const noPod = "--tls-secret-namespace is empty, and this runs in no pod whose namespace could be used: open /var/run/secrets/kubernetes.io/serviceaccount/namespace: no such file or directory"
	for line, want := range map[string]string{
		"":                   "there is no certificate to serve admission with: give --tlsCertFile and --tlsKeyFile, or --tls-self-managed",
		"--tlsCertFile a":    "--tlsKeyFile is empty; give the path of the certificate's key",
		"--tlsKeyFile a":     "--tlsCertFile is empty; give the path of the certificate",
		"--tlsCAFile a":      "--tlsCertFile is empty; give the path of the certificate\n--tlsKeyFile is empty; give the path of the certificate's key",
		"--tls-self-managed": "--tls-dns-name is missing; give the name by which the API server calls, as <service>.<namespace>.svc\n" + noPod,
		"--tls-self-managed --tls-dns-name a --tls-secret-namespace b --tlsCertFile c":                             "--tls-self-managed makes certificates of its own; leave out --tlsCertFile, --tlsKeyFile and --tlsCAFile",
		"--tls-self-managed --tls-dns-name a --tls-secret-namespace b --tls-secret-name= --webhook-configuration=": "--tls-secret-name is empty; give the name of the Secret that keeps the CA\n--webhook-configuration is empty; give the name of the webhook configurations",
	} {
		c := parseFlags(t, line)
		if _, err := c.Source(nil); err == nil || err.Error() != want {
			t.Errorf("%q\ngot  %v\nwant %s", line, err, want)
		}
	}
}

func TestFlags(t *testing.T) {
	got := parseFlags(t, "--tls-self-managed --tls-dns-name a --tls-dns-name b --tls-secret-namespace c --tlsCertFile d --tlsKeyFile e --tlsCAFile f --tls-secret-name g --webhook-configuration h")
	want := Config{CertFile: "d", KeyFile: "e", CAFile: "f", SelfManaged: true, SecretName: "g", SecretNamespace: "c", DNSNames: []string{"a", "b"}, Configuration: "h"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
	if got := parseFlags(t, ""); !reflect.DeepEqual(got, Defaults()) {
		t.Errorf("defaults: %+v", got)
	}
}

func parseFlags(t *testing.T, line string) Config {
	t.Helper()
	c := Defaults()
	app := &cli.App{Flags: c.Flags(), Action: func(*cli.Context) error { return nil }}
	if err := app.Run(append([]string{"test"}, strings.Fields(line)...)); err != nil {
		t.Fatal(err)
	}
	return c
}
