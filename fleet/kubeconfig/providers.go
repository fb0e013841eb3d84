package kubeconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"
	v1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// execExtension is the extension of a cluster that its exec plugin gets as configuration,
// a name that client-go reserves.
const execExtension = "client.authentication.k8s.io/exec"

// ignore is the one policy for arguments and variables that a ClusterProfile would add to
// a plugin's: they are not used.
const ignore = "Ignore"

// Providers are the programs that make credentials for clusters of ClusterProfiles, by the
// operator's file in the form of KEP-5339. Their order is that of preference.
type Providers []provider

type provider struct {
	Name       string         `json:"name"`
	ExecConfig *v1.ExecConfig `json:"execConfig"`
	// What a ClusterProfile may add to the program's arguments and variables.
	ArgsPolicy string `json:"profileSourcedCLIArgsPolicy,omitempty"`
	EnvPolicy  string `json:"profileSourcedEnvVarsPolicy,omitempty"`
}

// Access is an entry of a ClusterProfile's status.accessProviders.
type Access struct {
	Name    string     `json:"name"`
	Cluster v1.Cluster `json:"cluster"`
}

// ParseProviders reads the operator's file. Its errors name the field.
func ParseProviders(text []byte) (Providers, error) {
	var file struct {
		Providers Providers `json:"providers"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("the file of providers is no JSON of the form of KEP-5339: %w", err)
	}
	if len(file.Providers) == 0 {
		return nil, errors.New("providers: the file names none")
	}
	for i := range file.Providers {
		p := &file.Providers[i]
		switch {
		case p.Name == "":
			return nil, fmt.Errorf("providers[%d].name is empty", i)
		case slices.ContainsFunc(file.Providers[:i], func(q provider) bool { return q.Name == p.Name }):
			return nil, fmt.Errorf("providers[%d].name: %q is there twice", i, p.Name)
		case p.ExecConfig == nil || p.ExecConfig.Command == "":
			return nil, fmt.Errorf("providers[%d].execConfig.command is empty: name the program that makes credentials", i)
		case p.ArgsPolicy != "" && p.ArgsPolicy != ignore:
			return nil, fmt.Errorf("providers[%d].profileSourcedCLIArgsPolicy is %q: only %s is supported", i, p.ArgsPolicy, ignore)
		case p.EnvPolicy != "" && p.EnvPolicy != ignore:
			return nil, fmt.Errorf("providers[%d].profileSourcedEnvVarsPolicy is %q: only %s is supported", i, p.EnvPolicy, ignore)
		}
	}
	return file.Providers, nil
}

// Judge makes a configuration of the first provider that a cluster has, or says in one
// sentence why not. What runs is the operator's to say; the address is judged as that of
// a kubeconfig.
func (p Providers) Judge(offered []Access, allowLocal bool) (*rest.Config, error) {
	for i := range p {
		n := slices.IndexFunc(offered, func(a Access) bool { return a.Name == p[i].Name })
		if n < 0 {
			continue
		}
		cluster := api.NewCluster()
		if err := latest.Scheme.Convert(&offered[n].Cluster, cluster, nil); err != nil {
			return nil, fmt.Errorf("reading accessProviders[%d].cluster: %w", n, err)
		}
		if err := judgeCluster(offered[n].Name, cluster, allowLocal); err != nil {
			return nil, err
		}
		program := &api.ExecConfig{}
		if err := latest.Scheme.Convert(p[i].ExecConfig, program, nil); err != nil {
			return nil, fmt.Errorf("reading the execConfig of provider %q: %w", p[i].Name, err)
		}
		program.InteractiveMode = api.NeverExecInteractiveMode
		if config, has := cluster.Extensions[execExtension]; has {
			program.Config = config
		}
		return &rest.Config{
			Host: cluster.Server, ExecProvider: program,
			TLSClientConfig: rest.TLSClientConfig{ServerName: cluster.TLSServerName, CAData: cluster.CertificateAuthorityData},
		}, nil
	}
	return nil, fmt.Errorf("it has access by %s, and the controller's file of providers names %s", names(offered, func(a Access) string { return a.Name }), names(p, func(p provider) string { return p.Name }))
}

func names[T any](of []T, name func(T) string) string {
	if len(of) == 0 {
		return "nobody"
	}
	out := make([]string, 0, len(of))
	for _, t := range of {
		out = append(out, name(t))
	}
	return strings.Join(out, ", ")
}
