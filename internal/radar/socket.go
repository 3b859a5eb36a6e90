package radar

// Socket is where the configurations that ship have the radar's socket, and where
// commands look for it.
const Socket = "/run/otelcol-rdma/radar.sock"
