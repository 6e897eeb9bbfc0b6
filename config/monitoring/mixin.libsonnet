// The dashboard and the alerts of this folder as a monitoring mixin, for tools that take both from one:
//
//     local robotsd = import 'monitoring/mixin.libsonnet';
//
// The files beside it are the whole of it, and work without any such tool.
{
  grafanaDashboards+:: {
    'robotsd.json': import 'dashboard.json',
  },
  prometheusAlerts+:: std.parseYaml(importstr 'alerts.yml'),
}
