package rdmareceiver

import (
	"cmp"
	"net/netip"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/route"
	"github.com/rdmaradar/rdmaradar/internal/verbs"
	"github.com/rdmaradar/rdmaradar/receiver/rdmareceiver/internal/metadata"
)

// routeKey is which route a series is of. The zero value is none.
type routeKey struct {
	port uint8
	ends route.Ends
	rank number
}

func (k routeKey) compare(other routeKey) int {
	return cmp.Or(
		cmp.Compare(k.port, other.port),
		slices.Compare(k.ends.Remote[:], other.ends.Remote[:]),
		cmp.Compare(k.ends.RemoteLID, other.ends.RemoteLID),
		slices.Compare(k.ends.Local[:], other.ends.Local[:]),
		cmp.Compare(k.ends.GIDType, other.ends.GIDType),
		k.rank.compare(other.rank),
	)
}

// attributes are those that name the route, as far as they are known.
func (k routeKey) attributes() []metadata.MetricAttributeOption {
	var named []metadata.MetricAttributeOption
	path := k.ends.Path()
	text := func(value string, option func(string) metadata.MetricAttributeOption) {
		if value != "" {
			named = append(named, option(value))
		}
	}
	integer := func(value int64, known bool, option func(int64) metadata.MetricAttributeOption) {
		if known {
			named = append(named, option(value))
		}
	}
	integer(int64(k.port), k.port != 0, metadata.WithRdmaDevicePortMetricAttribute)
	integer(k.rank.value, k.rank.known, metadata.WithRdmaRankMetricAttribute)
	text(addressText(path.LocalAddress()), metadata.WithNetworkLocalAddressMetricAttribute)
	text(addressText(path.RemoteAddress()), metadata.WithNetworkPeerAddressMetricAttribute)
	text(path.LocalGID.String(), metadata.WithRdmaLocalGidMetricAttribute)
	text(path.RemoteGID.String(), metadata.WithRdmaPeerGidMetricAttribute)
	integer(int64(path.RemoteLID), path.RemoteLID != 0, metadata.WithRdmaPeerLidMetricAttribute)
	return named
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// routeOwner is whose queues are one route: those of a rank of a job, and of a
// process where metrics are split by process.
type routeOwner struct {
	owner owner
	rank  number
}

// routeTable keeps the queues of the snapshot before.
type routeTable struct {
	before []verbs.QueueInfo
}

// addRoutes adds the hottest routes of the interval, if they are asked for.
func (a *aggregator) addRoutes(snap *verbs.Snapshot, now pcommon.Timestamp) {
	if a.routes == nil {
		return
	}
	interval := now.AsTime().Sub(a.previous.AsTime())
	present := slices.DeleteFunc(slices.Clone(snap.Queues), func(q verbs.QueueInfo) bool {
		return slices.Contains(snap.Exited, q.ID.Process)
	})
	for _, r := range route.Table(a.routes.before, present, snap.Ended, a.routeOwnerOf) {
		a.addRoute(&r, interval.Seconds())
	}
	a.routes.before = present
}

func (a *aggregator) routeOwnerOf(process verbs.ProcessID) routeOwner {
	return routeOwner{owner: a.ownerOf(process), rank: rankOf(a.identify(process))}
}

func (a *aggregator) addRoute(r *route.Route[routeOwner], seconds float64) {
	at := seriesKey{owner: r.Owner.owner, device: r.Device, route: routeKey{port: r.Port, ends: r.Ends, rank: r.Owner.rank}}
	a.set(at.with(routeQueues, ""), int64(r.Queues))
	a.set(at.with(routeSlowCompletions, ""), int64(r.Slow))
	if seconds > 0 {
		a.set(at.with(routeThroughput, ""), int64(float64(r.Bytes)/seconds))
	}
	if r.Timed > 0 {
		a.set(at.with(routeDuration, metadata.AttributeRdmaRouteQuantileP50.String()), int64(r.P50))
		a.set(at.with(routeDuration, metadata.AttributeRdmaRouteQuantileP99.String()), int64(r.P99))
	}
}
