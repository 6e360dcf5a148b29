{{- define "landfall.labels" -}}
app.kubernetes.io/name: landfall
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The labels that select the pods of a service: (dict "root" $ "service" NAME). */ -}}
{{- define "landfall.selector" -}}
app.kubernetes.io/name: landfall
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .service }}
{{- end }}

{{- define "landfall.name" -}}
{{ .root.Release.Name }}-{{ .service }}
{{- end }}
