package kubeconfig

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestParseProviders(t *testing.T) {
	for text, want := range map[string]string{
		`{"providers":[{"name":"ocm","execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"/plugins/cp-creds","args":["-a"],"provideClusterInfo":true}}]}`: "<nil>",
		`{"providers":[{"name":"ocm","execConfig":{"command":"x"},"profileSourcedCLIArgsPolicy":"Ignore","profileSourcedEnvVarsPolicy":"Ignore"}]}`:                          "<nil>",
		`{}`:                           "providers: the file names none",
		`{"providers":[{"name":""}]}`:  "providers[0].name is empty",
		`{"providers":[{"name":"a"}]}`: "providers[0].execConfig.command is empty: name the program that makes credentials",
		`{"providers":[{"nam":"a"}]}`:  `the file of providers is no JSON of the form of KEP-5339: json: unknown field "nam"`,
		`{"providers":[{"name":"a","execConfig":{"command":"x"}},{"name":"a","execConfig":{"command":"x"}}]}`: `providers[1].name: "a" is there twice`,
		`{"providers":[{"name":"a","execConfig":{"command":"x"},"profileSourcedCLIArgsPolicy":"Append"}]}`:    `providers[0].profileSourcedCLIArgsPolicy is "Append": only Ignore is supported`,
		`{"providers":[{"name":"a","execConfig":{"command":"x"},"profileSourcedEnvVarsPolicy":"Replace"}]}`:   `providers[0].profileSourcedEnvVarsPolicy is "Replace": only Ignore is supported`,
	} {
		if _, err := ParseProviders([]byte(text)); fmt.Sprint(err) != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

func TestJudgeAccess(t *testing.T) {
	providers, err := ParseProviders([]byte(`{"providers":[
		{"name":"first","execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"/plugins/first","args":["-a"],"provideClusterInfo":true}},
		{"name":"second","execConfig":{"apiVersion":"client.authentication.k8s.io/v1","command":"/plugins/second"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`[{"name":"second","cluster":{"server":"https://b:6443"}},{"name":"first","cluster":{"server":"https://a:6443","extensions":[{"name":"client.authentication.k8s.io/exec","extension":{"clusterName":"gz"}}]}}]`: `https://a:6443 /plugins/first [-a] {"clusterName":"gz"}`,
		`[{"name":"second","cluster":{"server":"https://b:6443"}}]`: `https://b:6443 /plugins/second [] null`,
		`[]`:                 "it has access by nobody, and the controller's file of providers names first, second",
		`[{"name":"third"}]`: "it has access by third, and the controller's file of providers names first, second",
		`[{"name":"first","cluster":{"server":"http://a"}}]`:                                      `server of cluster "first" is not https`,
		`[{"name":"first","cluster":{"server":"https://localhost"}}]`:                             `server of cluster "first" is localhost, which is the hub's own machine and not a member`,
		`[{"name":"first","cluster":{"server":"https://a","insecure-skip-tls-verify":true}}]`:     `cluster "first" has insecure-skip-tls-verify: anybody could answer in its place; give certificate-authority-data`,
		`[{"name":"first","cluster":{"server":"https://a","certificate-authority":"/etc/ca"}}]`:   `cluster "first" names the file certificate-authority; give its content as certificate-authority-data`,
		`[{"name":"first","cluster":{"server":"https://a","proxy-url":"http://p"}}]`:              `cluster "first" has a proxy-url, which would see where it is sent; it is not used`,
		`[{"name":"first","cluster":{"server":"https://a","certificate-authority-data":"eA=="}}]`: `certificate-authority-data of cluster "first" has no certificate`,
	} {
		var offered []Access
		if err := json.Unmarshal([]byte(text), &offered); err != nil {
			t.Fatal(err)
		}
		config, err := providers.Judge(offered, false)
		got := fmt.Sprint(err)
		if err == nil {
			extension, _ := json.Marshal(config.ExecProvider.Config)
			got = fmt.Sprint(config.Host, " ", config.ExecProvider.Command, " ", config.ExecProvider.Args, " ", string(extension))
			if config.ExecProvider.InteractiveMode != "Never" {
				t.Errorf("%s: it may ask somebody", text)
			}
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
}
