package certs

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"tkestack.io/tapp/process"
)

// Config says where the certificate comes from: files, or a CA of our own. Flags
// fill it.
type Config struct {
	// CertFile, KeyFile and CAFile are those of FileOptions.
	CertFile, KeyFile, CAFile string
	// SelfManaged replaces the files.
	SelfManaged bool
	// SecretName and SecretNamespace of the CA; without a namespace: the pod's own.
	SecretName, SecretNamespace string
	// DNSNames by which the API server calls us, such as tapp.kube-system.svc.
	DNSNames []string
	// Configuration is the name of the webhook configurations that shall trust us.
	Configuration string
}

// Defaults of the configuration, which those of the flags are.
func Defaults() Config {
	return Config{SecretName: "tapp-ca", Configuration: "tapp"}
}

// Flags fill the configuration. The first three keep the names of tkestack/tapp.
func (c *Config) Flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "tlsCertFile", Usage: "`path` of the certificate to serve admission with; it is read again when it changes", Destination: &c.CertFile},
		&cli.StringFlag{Name: "tlsKeyFile", Usage: "`path` of its key", Destination: &c.KeyFile},
		&cli.StringFlag{Name: "tlsCAFile", Usage: "`path` of the CA that signed it, if that shall be checked at the start", Destination: &c.CAFile},
		&cli.BoolFlag{Name: "tls-self-managed", Usage: "serve with certificates of a CA of our own instead, and make the webhook configurations trust it", Destination: &c.SelfManaged},
		&cli.StringFlag{Name: "tls-secret-name", Usage: "`name` of the Secret that keeps our own CA", Destination: &c.SecretName, Value: c.SecretName},
		&cli.StringFlag{Name: "tls-secret-namespace", Usage: "`namespace` of that Secret; by default the one that this runs in", Destination: &c.SecretNamespace},
		&cli.StringSliceFlag{Name: "tls-dns-name", Usage: "`name` that our own certificates are for, as <service>.<namespace>.svc; may be repeated", Action: func(_ *cli.Context, names []string) error {
			c.DNSNames = names
			return nil
		}},
		&cli.StringFlag{Name: "webhook-configuration", Usage: "`name` of the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration that shall trust our own CA", Destination: &c.Configuration, Value: c.Configuration},
	}
}

// Source of the certificate that the configuration means. With files it does not
// need the API server.
func (c *Config) Source(api *rest.Config) (*Source, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	if !c.SelfManaged {
		return Files(FileOptions{CertFile: c.CertFile, KeyFile: c.KeyFile, CAFile: c.CAFile})
	}
	return SelfManaged(SelfManagedOptions{
		REST: api, SecretNamespace: c.SecretNamespace, SecretName: c.SecretName, DNSNames: c.DNSNames, Configuration: c.Configuration,
	})
}

func (c *Config) complete() error {
	var errs []error
	reject := func(bad bool, message string) {
		if bad {
			errs = append(errs, errors.New(message))
		}
	}
	files := c.CertFile != "" || c.KeyFile != "" || c.CAFile != ""
	if !c.SelfManaged {
		reject(!files, "there is no certificate to serve admission with: give --tlsCertFile and --tlsKeyFile, or --tls-self-managed")
		reject(files && c.CertFile == "", "--tlsCertFile is empty; give the path of the certificate")
		reject(files && c.KeyFile == "", "--tlsKeyFile is empty; give the path of the certificate's key")
		return errors.Join(errs...)
	}
	reject(files, "--tls-self-managed makes certificates of its own; leave out --tlsCertFile, --tlsKeyFile and --tlsCAFile")
	reject(c.SecretName == "", "--tls-secret-name is empty; give the name of the Secret that keeps the CA")
	reject(len(c.DNSNames) == 0, "--tls-dns-name is missing; give the name by which the API server calls, as <service>.<namespace>.svc")
	reject(c.Configuration == "", "--webhook-configuration is empty; give the name of the webhook configurations")
	if c.SecretNamespace == "" {
		var err error
		if c.SecretNamespace, err = process.PodNamespace(); err != nil {
			errs = append(errs, fmt.Errorf("--tls-secret-namespace is empty, and this runs in no pod whose namespace could be used: %w", err))
		}
	}
	return errors.Join(errs...)
}
