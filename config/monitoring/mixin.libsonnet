// The dashboard and the alerts of this folder as a monitoring mixin, for tools that expect one:
//
//     local robotsd = import 'monitoring/mixin.libsonnet';
//
// This file only wraps the other files of this folder, which also work without such a tool.
{
  grafanaDashboards+:: {
    'robotsd.json': import 'dashboard.json',
  },
  prometheusAlerts+:: std.parseYaml(importstr 'alerts.yml'),
}
