// Package dashboards holds the tests of config/grafana and config/prometheus with a
// real Prometheus, which is fed by the built collector and by what the receiver
// would send on hardware that is not here. It has no code of its own; `make
// backends` runs it.
package dashboards
