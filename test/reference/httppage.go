package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"tkestack.io/tapp/api"
)

// httpIntro is what holds for all routes.
const httpIntro = `# The HTTP API

` + "`tapp api`" + ` serves what TApps, Apps and AppSets do as JSON, and as streams. It reads and never writes. This page is made of its OpenAPI document
(` + "`make generate`" + `), which the server has at ` + "`/api/openapi.json`" + `.

## Start it

` + "```sh" + `
helm upgrade tapp ./chart --reuse-values --set api.enabled=true   # in the cluster, as the Service <release>-api
tapp api --kubeconfig ~/.kube/config --listen-address 127.0.0.1:8443   # outside; sym-api api -v 4 is the same
` + "```" + `

The certificate is that of ` + "`--tlsCertFile` and `--tlsKeyFile`" + `; in the chart cert-manager's, or the Secret of ` + "`api.tls.secretName`" + `. Without one the server makes
a self-signed one for each run, and logs its SHA-256. Only TLS 1.3 is spoken.

` + "```sh" + `
kubectl -n tapp-system port-forward service/tapp-api 8443:443 &
TOKEN=$(kubectl create token viewer)
curl -k -H "Authorization: Bearer $TOKEN" https://127.0.0.1:8443/api/v1/tapps
` + "```" + `

Behind an Ingress, let it speak HTTPS to the Service, and not buffer: for ingress-nginx the annotations
` + "`nginx.ingress.kubernetes.io/backend-protocol: HTTPS` and `nginx.ingress.kubernetes.io/proxy-read-timeout: \"3600\"`" + `.

## Who may

Every request but ` + "`/healthz`" + ` has a bearer token of the cluster (TokenReview) or a client certificate of the API server's CA, and the API server is asked
about each object (SubjectAccessReview): what ` + "`kubectl get`" + ` shows to somebody, this API shows, too. Granted answers are kept for a minute, refused ones for 10
seconds. A list over all namespaces has the namespaces in which the caller may list. Pods and logs need ` + "`get` on `pods` and `pods/log`" + ` besides, and the pod has to
belong to a TApp or an App that the caller may get, by the UIDs of its owners. Secrets and environment variables are never shown.

For the pods of an AppSet in the clusters of a fleet, the hub's RBAC counts: ` + "`get` on `appsets`, and on the subresources `appsets/instances` (pods and their events) and `appsets/log`" + `
(logs). These subresources are rights for this API alone. A pod has to belong to a part of that AppSet by the UIDs of its owners; what a chart made is known by the
marks of its release on its Deployment, StatefulSet or DaemonSet. The clusters are asked by the hub's account, which ` + "`kubectl tapp fleet join --pods`" + ` gives the
rights:

` + "```sh" + `
kubectl create role store-operator -n shop --verb=get --resource=appsets.workload.dmall.com,appsets.workload.dmall.com/instances,appsets.workload.dmall.com/log
kubectl tapp fleet join gz --pods --context gz --hub-context hub
` + "```" + `

## Errors and limits

Errors are a ` + "`Status`" + ` of Kubernetes: ` + "`{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\",\"message\":\"...\",\"code\":403}`" + `.

| limit | default | beyond it |
|---|---|---|
| requests of one caller | 100 a second, 200 at once (` + "`--requests-per-second`" + `) | 429, with Retry-After |
| wrong tokens from one address | 30 a minute (` + "`--failures-per-minute`" + `) | 429 |
| requests that wait for their answer, of all callers, and of one | 400 and 200 (four and two times ` + "`--requests-per-second`" + `, but for all no fewer than 400) | 429 |
| streams of all callers, and of one | 1,000 and 250 (` + "`--max-streams`, `--max-streams-per-user`" + `) | 429 |
| a request that is no stream | 30 s | 503 |
| a reader that takes nothing | 10 s | its stream is ended |
| a manifest | 1.5 MiB | 413 |
| a log that is not followed | 10,000 lines, 16 MiB | its end is left out |

While the API server does not answer, lists and objects that are known already are shown as they were, with ` + "`degraded`" + `, a sentence, and ` + "`asOf`" + `, the time up to which
they are true. One that takes requests and does not answer them is noticed within ten seconds, also by streams, whose watches stay open then.

## Lists

` + "`limit` and `continue`" + ` page through a list; ` + "`total`" + ` counts all pages. Every answer has an ETag: with ` + "`If-None-Match`" + ` what did not change is a 304.

## Streams

With ` + "`?watch=1`" + ` a list or an object is a stream of server-sent events. Changes are collected for a fifth of a second.

| event | data |
|---|---|
| ` + "`list`" + ` | the whole list: the beginning |
| ` + "`change`" + ` | ` + "`items`" + ` that are new or other ones, whole; ` + "`removed`" + `, the keys of those that are gone (` + "`<namespace>/<name>`" + `, or the instance id); ` + "`total`" + ` and the sums |
| ` + "`object`" + ` | the whole object, whenever it is another one |
| ` + "`health`" + ` | at the start and when it changes: ` + "`degraded` and `asOf`" + `, or ` + "`{}`" + ` |
| ` + "`error`" + ` | a ` + "`Status`" + `; the stream ends. 401 and 403: the token expired, or the right was withdrawn |

A comment comes every 15 seconds. Send the last ` + "`id`" + ` back as ` + "`Last-Event-ID`" + `: if nothing changed meanwhile, the list is not sent again.

## Routes

Those below ` + "`/api/cluster`" + ` are the read-only ones of the system that AppSets come from, under the same paths, with ` + "`all`" + ` for all clusters. They answer as the routes do
whose place they take: the pods of a cluster that does not answer are missing, which ` + "`clusters` and `degraded`" + ` tell. Those that changed something there (restart, delete, exec) do not
exist.
`

// httpPage writes docs/api.md.
func httpPage(out io.Writer) error {
	var b strings.Builder
	b.WriteString(httpIntro)
	b.WriteString("\n| route | |\n|---|---|\n")
	routes := api.Routes()
	for _, r := range routes {
		fmt.Fprintf(&b, "| [`%s %s`](#%s) | %s |\n", r.Method, r.Path, strings.ToLower(r.ID), r.Summary)
	}
	for _, r := range routes {
		fmt.Fprintf(&b, "\n### %s\n\n`%s %s`: %s Rights: %s.\n", r.ID, r.Method, r.Path, r.Summary, r.Rights)
		if len(r.Query) > 0 {
			b.WriteString("\n| parameter | |\n|---|---|\n")
			for _, p := range r.Query {
				fmt.Fprintf(&b, "| `%s` | %s |\n", p.Name, p.Text)
			}
		}
		if err := writeExample(&b, r); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func writeExample(b *strings.Builder, r api.Route) error {
	e, ok := httpExamples()[r.ID]
	if !ok {
		return fmt.Errorf("the route %s has no example", r.ID)
	}
	path := strings.NewReplacer("{cluster}", "gz", "{namespace}", "shop", "{name}", e.name).Replace(r.Path) + e.query
	line := "curl -H \"Authorization: Bearer $TOKEN\" "
	if r.Method == http.MethodPost {
		line += "--data-binary @web.yaml "
	}
	fmt.Fprintf(b, "\n```console\n$ %s\"$API%s\"\n", line, path)
	if text, ok := e.answer.(string); ok {
		fmt.Fprintf(b, "%s\n```\n", text)
		return nil
	}
	text, err := json.MarshalIndent(e.answer, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "%s\n```\n", text)
	return nil
}
