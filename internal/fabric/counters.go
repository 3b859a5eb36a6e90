package fabric

// Counters returns the table of all counters that are known: those that help to
// tell why a work request was slow, or whether a port is well. Others are not
// read.
func Counters() []Counter {
	var all []Counter
	for _, some := range [][]Counter{portCounters(), hardwareCounters(), otherCounters(), ethtoolCounters(), aerCounters()} {
		all = append(all, some...)
	}
	return all
}

func from(source CounterSource, counters []Counter) []Counter {
	for i := range counters {
		counters[i].Source = source
	}
	return counters
}
