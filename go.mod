module github.com/rdmaradar/rdmaradar

go 1.26.0
