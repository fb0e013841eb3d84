{{/* Names. */}}
{{- define "tapp.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "tapp.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "tapp.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "tapp.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "tapp.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "tapp.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The account of the webhooks, where they have one of their own. */}}
{{- define "tapp.webhookServiceAccountName" -}}
{{- default (printf "%s-webhook" (include "tapp.fullname" .)) .Values.split.webhookServiceAccount -}}
{{- end -}}

{{/* The user names of TApp's accounts. */}}
{{- define "tapp.username" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "tapp.serviceAccountName" . }}
{{- end -}}

{{- define "tapp.webhookUsername" -}}
system:serviceaccount:{{ .Release.Namespace }}:{{ include "tapp.webhookServiceAccountName" . }}
{{- end -}}

{{/* Whether a request is one of TApp's account. */}}
{{- define "tapp.isOurs" -}}
- name: is-ours
{{- if .Values.split.enabled }}
  expression: request.userInfo.username in ['{{ include "tapp.username" . }}', '{{ include "tapp.webhookUsername" . }}']
{{- else }}
  expression: request.userInfo.username == '{{ include "tapp.username" . }}'
{{- end }}
{{- end -}}

{{/* The label of a part, where there are two. */}}
{{- define "tapp.component" -}}
{{- with . -}}
app.kubernetes.io/component: {{ . }}
{{- end -}}
{{- end -}}

{{/* Labels. */}}
{{- define "tapp.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tapp.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Labels that the user gives, without those that the chart sets itself, which it refuses: both would be keys of one map. Arguments: the
root, and the path and the value of labels that win over commonLabels. */}}
{{- define "tapp.userLabels" -}}
{{- $common := default dict (index . 0).Values.commonLabels }}
{{- $more := default dict (index . 2) }}
{{- range $path, $labels := dict "commonLabels" $common (index . 1) $more }}
{{- range $key, $_ := $labels }}
{{- if or (has $key (list "helm.sh/chart" "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "app.kubernetes.io/component")) (hasPrefix "rbac.authorization.k8s.io/" $key) }}
{{- fail (printf "%s: %s is a label that the chart sets itself: leave it out" $path $key) }}
{{- end }}
{{- end }}
{{- end }}
{{- with merge (deepCopy $more) $common }}
{{- toYaml . }}
{{- end }}
{{- end -}}

{{- define "tapp.labels" -}}
{{ include "tapp.ownLabels" . }}
{{- with include "tapp.userLabels" (list . "commonLabels" .Values.commonLabels) }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "tapp.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tapp.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "tapp.image" -}}
{{- $i := .Values.image -}}
{{- if not $i.repository -}}
{{- /* What needs no image, such as the rights of a member, renders without one. The API server refuses a Deployment without. */ -}}
""
{{- else if $i.digest -}}
{{- printf "%s@%s" $i.repository $i.digest -}}
{{- else -}}
{{- printf "%s:%s" $i.repository (default .Chart.AppVersion $i.tag) -}}
{{- end -}}
{{- end -}}

{{/* TLS. */}}
{{- define "tapp.tlsMode" -}}
{{- if .Values.tls.mode -}}
{{- .Values.tls.mode -}}
{{- else if .Capabilities.APIVersions.Has "cert-manager.io/v1" -}}
certManager
{{- else -}}
selfManaged
{{- end -}}
{{- end -}}

{{/* How many seconds before its end a certificate should have been renewed: half of what cert-manager renews it before; selfManaged renews
its certificates of 7 days two days before their end; a provided one is somebody's to renew. */}}
{{- define "tapp.certificateSeconds" -}}
{{- $mode := include "tapp.tlsMode" . -}}
{{- $before := .Values.tls.certManager.renewBefore -}}
{{- if .Values.metrics.prometheusRule.certificateDays -}}
{{- mul .Values.metrics.prometheusRule.certificateDays 86400 -}}
{{- else if eq $mode "provided" -}}
{{- mul 14 86400 -}}
{{- else if and (eq $mode "certManager") (regexMatch "^[0-9]+h$" $before) -}}
{{- mul (trimSuffix "h" $before | int64) 1800 -}}
{{- else -}}
{{- 86400 -}}
{{- end -}}
{{- end -}}

{{/* The Secret that is mounted, where one is. */}}
{{- define "tapp.tlsSecretName" -}}
{{- if eq (include "tapp.tlsMode" .) "provided" -}}
{{- .Values.tls.provided.secretName -}}
{{- else -}}
{{- include "tapp.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{/* The Secret in which TApp keeps its own CA. */}}
{{- define "tapp.ownCASecretName" -}}
{{- include "tapp.fullname" . }}-own-ca
{{- end -}}

{{- define "tapp.leaseName" -}}
{{- include "tapp.fullname" . }}-controller
{{- end -}}

{{- define "tapp.dnsName" -}}
{{- printf "%s.%s.svc" (include "tapp.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* What the two webhook configurations have in common. */}}
{{- define "tapp.webhookMetadata" -}}
name: {{ include "tapp.fullname" . }}
labels:
  {{- include "tapp.labels" . | nindent 2 }}
{{- if eq (include "tapp.tlsMode" .) "certManager" }}
annotations:
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/{{ include "tapp.fullname" . }}
{{- end }}
{{- end -}}

{{/* Arguments: the root, and the path. */}}
{{- define "tapp.webhookClient" -}}
{{- $ := index . 0 -}}
service:
  namespace: {{ $.Release.Namespace }}
  name: {{ include "tapp.fullname" $ }}
  port: 443
  path: {{ index . 1 }}
{{- if eq (include "tapp.tlsMode" $) "provided" }}
caBundle: {{ $.Values.tls.provided.caBundle | b64enc }}
{{- end }}
{{- end -}}

{{- define "tapp.webhookScope" -}}
failurePolicy: {{ .Values.webhook.failurePolicy }}
matchPolicy: Equivalent
sideEffects: None
timeoutSeconds: {{ .Values.webhook.timeoutSeconds }}
admissionReviewVersions: [v1]
# What is going is not looked at: its finalizers can be removed whether or not a pod answers.
matchConditions:
- name: stays
  expression: "!has(object.metadata.deletionTimestamp)"
{{- if .Values.namespace }}
namespaceSelector:
  matchLabels:
    kubernetes.io/metadata.name: {{ .Values.namespace }}
{{- else if .Values.webhook.namespaceSelector }}
namespaceSelector:
  {{- toYaml .Values.webhook.namespaceSelector | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The kinds that are looked after, with commas between them; empty: only TApps, which is the default. */}}
{{- define "tapp.controllers" -}}
{{- $kinds := list "tapp" }}
{{- range $kind := list "app" "advdeployment" "appset" }}
{{- if (get $.Values.controllers $kind).enabled }}
{{- $kinds = append $kinds $kind }}
{{- end }}
{{- end }}
{{- if gt (len $kinds) 1 }}{{ join "," $kinds }}{{ end }}
{{- end }}

{{- define "tapp.clusterNamespace" -}}
{{- default .Release.Namespace .Values.fleet.clusterNamespace -}}
{{- end }}

{{/* Labels of what belongs to `tapp api`. The name is another one, so that the selectors of the controllers' pods leave these out. */}}
{{- define "tapp.apiSelectorLabels" -}}
app.kubernetes.io/name: {{ include "tapp.name" . | trunc 59 }}-api
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tapp.apiLabels" -}}
{{ include "tapp.apiOwnLabels" . }}
{{- with include "tapp.userLabels" (list . "commonLabels" .Values.commonLabels) }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "tapp.apiOwnLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "tapp.apiSelectorLabels" . }}
app.kubernetes.io/component: api
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Of what `helm test` makes. The name is another one here, too. The argument of the hook is its weight. */}}
{{- define "tapp.testLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "tapp.name" . | trunc 58 }}-test
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with include "tapp.userLabels" (list . "commonLabels" .Values.commonLabels) }}
{{ . }}
{{- end }}
{{- end -}}

{{- define "tapp.testHook" -}}
helm.sh/hook: test
helm.sh/hook-weight: {{ . | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end -}}
