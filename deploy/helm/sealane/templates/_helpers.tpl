{{/* The name that everything of this release has. */}}
{{- define "sealane.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* By these the pod is found; they never change. */}}
{{- define "sealane.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sealane.labels" -}}
{{ include "sealane.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "sealane.secretName" -}}
{{- if .Values.secret.existingSecret -}}
{{- .Values.secret.existingSecret -}}
{{- else if .Values.secret.values -}}
{{- include "sealane.fullname" . -}}
{{- end -}}
{{- end -}}

{{/* Every name by which clients reach the node, with commas between them: its certificate is for them. */}}
{{- define "sealane.certificateNames" -}}
{{- $service := include "sealane.fullname" . -}}
{{- $pod := printf "%s-0.%s-headless" $service $service -}}
{{- $names := list -}}
{{- range list $service $pod -}}
{{- $names = concat $names (list . (printf "%s.%s" . $.Release.Namespace) (printf "%s.%s.svc" . $.Release.Namespace)) -}}
{{- $names = append $names (printf "%s.%s.svc.cluster.local" . $.Release.Namespace) -}}
{{- end -}}
{{- concat $names .Values.certificateNames | join "," -}}
{{- end -}}

{{/* sealane.yaml: what the values say, behind doors that the pod's address leads to. */}}
{{- define "sealane.config" -}}
{{- $doors := dict -}}
{{- range $name, $door := .Values.doors -}}
{{- $_ := set $doors $name (merge (dict "host" "0.0.0.0") $door) -}}
{{- end -}}
{{- $certificates := dict "names" (include "sealane.certificateNames" .) -}}
{{- $own := dict "doors" $doors "security" (dict "certificates" $certificates) -}}
{{- toYaml (mustMergeOverwrite (deepCopy .Values.config) $own) -}}
{{- end -}}

{{/* The doors that are open, as ports of a service. */}}
{{- define "sealane.servicePorts" -}}
{{- range $name, $door := .Values.doors }}
{{- if $door.enabled }}
- name: {{ $name }}
  port: {{ $door.port }}
  targetPort: {{ $name }}
{{- end }}
{{- end }}
{{- end -}}

{{/* What is wrong beyond what a schema can say, in words. */}}
{{- define "sealane.check" -}}
{{- if ne (int .Values.replicaCount) 1 -}}
{{- fail (printf "replicaCount is %v, and must be 1: a node holds its data directory alone. For more nodes, install the chart again under another name." .Values.replicaCount) -}}
{{- end -}}
{{- if not .Values.doors.http.enabled -}}
{{- fail "doors.http.enabled is false, and Kubernetes asks that door whether the node is ready: leave it on. Who may reach it is for networkPolicy to say." -}}
{{- end -}}
{{- if hasKey .Values.config "doors" -}}
{{- fail "config.doors is given, and doors have a place of their own beside config: doors" -}}
{{- end -}}
{{- if dig "security" "certificates" "names" "" .Values.config -}}
{{- fail "config.security.certificates.names is given: name them in certificateNames, which keeps those of the services" -}}
{{- end -}}
{{- if and .Values.secret.existingSecret .Values.secret.values -}}
{{- fail "secret.existingSecret and secret.values are both given: name a Secret that exists, or let the chart make one, not both." -}}
{{- end -}}
{{- end -}}
