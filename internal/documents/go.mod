// Tests of the documents. They live in a module of their own so that their
// dependencies never reach the receiver or those who import it.
module github.com/rdmaradar/rdmaradar/internal/documents

go 1.26.0

require (
	github.com/stretchr/testify v1.12.1
	github.com/yuin/goldmark v1.8.7
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
