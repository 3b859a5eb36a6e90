package rdmareceiver

import (
	"net/netip"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/rdmaradar/rdmaradar/internal/verbs"
)

// putSetup puts what a queue pair was set up for.
func putSetup(to pcommon.Map, s *verbs.Setup) {
	putPositive(to, attributeSQLimit, int64(s.SendLimit))
	putPositive(to, attributeRQLimit, int64(s.RecvLimit))
	if s.HasSignalsAll {
		to.PutBool(attributeSQSignalsAll, s.SignalsAll)
	}
	if s.HasState {
		to.PutStr(attributeQPState, s.State.String())
	}
}

// putPath puts how a queue pair reaches its peer. The addresses of the peer are
// left out where they are not wanted.
func putPath(to pcommon.Map, p *verbs.Path, withPeer bool) {
	putAddress(to, attributeLocalAddress, p.LocalAddress())
	putString(to, attributeLocalGID, p.LocalGID.String())
	if withPeer {
		putAddress(to, attributePeerAddress, p.RemoteAddress())
		putString(to, attributePeerGID, p.RemoteGID.String())
		putPositive(to, attributePeerLID, int64(p.RemoteLID))
	}
	putPositive(to, attributeQPPathMTU, int64(p.MTU))
	putDuration(to, attributeQPAckTimeout, p.AckTimeout)
	putDuration(to, attributeQPMinRNRTimer, p.MinRNRTimer)
	if p.HasRetryCount {
		to.PutInt(attributeQPRetryCount, int64(p.RetryCount))
	}
	if p.HasRNRRetryCount {
		to.PutInt(attributeQPRNRRetryCount, int64(p.RNRRetryCount))
	}
	if p.HasClass {
		to.PutInt(attributeQPServiceLevel, int64(p.ServiceLevel))
		to.PutInt(attributeQPTrafficClass, int64(p.TrafficClass))
	}
}

func putAddress(to pcommon.Map, key string, address netip.Addr) {
	if address.IsValid() {
		to.PutStr(key, address.String())
	}
}

// putDuration puts a time that is not known when it is 0.
func putDuration(to pcommon.Map, key string, value time.Duration) {
	if value != 0 {
		to.PutDouble(key, secondsOf(value))
	}
}
