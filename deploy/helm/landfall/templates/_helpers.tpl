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

{{- /* What a pod mounts of the secrets that its service may read, and the volumes for that: (dict "root" $ "service" NAME). */ -}}
{{- define "landfall.secretMounts" -}}
{{- if .root.Values.kafka.secret }}
- {name: kafka, mountPath: /run/secrets/landfall/kafka, readOnly: true}
{{- end }}
{{- range $file, $secret := .root.Values.secrets }}
{{- if has $.service $secret.services }}
- {name: secret-{{ $file }}, mountPath: /run/secrets/landfall/{{ $file }}, subPath: {{ $file }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

{{- define "landfall.secretVolumes" -}}
{{- with .root.Values.kafka.secret }}
- name: kafka
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ . }}
          optional: true
          items: [{key: ca.pem, path: ca.pem}]
      {{- range $key := list $.service (printf "%s.pem" $.service) (printf "%s.key" $.service) }}
      - secret:
          name: {{ $.root.Values.kafka.secret }}
          optional: true
          items: [{key: {{ $key }}, path: {{ $key }}}]
      {{- end }}
{{- end }}
{{- range $file, $secret := .root.Values.secrets }}
{{- if has $.service $secret.services }}
- name: secret-{{ $file }}
  secret:
    secretName: {{ $secret.secret }}
    defaultMode: 0400
    items: [{key: {{ $secret.key }}, path: {{ $file }}}]
{{- end }}
{{- end }}
{{- end }}
