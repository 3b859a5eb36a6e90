// Tests of the built collector with real backends. They live in a module of their
// own so that their dependencies never reach the receiver or those who import it.
module github.com/rdmaradar/rdmaradar/internal/e2e

go 1.26.0

replace github.com/rdmaradar/rdmaradar => ../..

require (
	github.com/prometheus/client_golang v1.24.1
	github.com/prometheus/common v0.70.1
	github.com/rdmaradar/rdmaradar v0.0.0-00010101000000-000000000000
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/json-iterator/go v1.1.12 // indirect
	github.com/modern-go/concurrent v0.0.0-20180306012644-bacd9c7ef1dd // indirect
	github.com/modern-go/reflect2 v1.0.3-0.20250322232337-35a7c28c31ee // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
