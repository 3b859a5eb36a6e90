package diagnose

// networkCauses are those outside of the host's threads: the more specific first,
// and one that brings others about before them.
func networkCauses() []Cause {
	return append(specificNetworkCauses(), networkDelayCause())
}

// specificNetworkCauses are all but network_delay, which is what remains.
func specificNetworkCauses() []Cause {
	return []Cause{
		linkDownCause(),
		receiverNotReadyCause(),
		badCableCause(),
		packetLossCause(),
		adaptiveRetransmissionCause(),
		ackTimeoutCause(),
		pcieDegradedCause(),
		pcieSettingsCause(),
		pcieBackPressureCause(),
		pfcReceivedCause(),
		pfcSentCause(),
		globalPauseCause(),
		creditWaitCause(),
		ecnThrottlingCause(),
		portImbalanceCause(),
		numaMisplacementCause(),
		contextCacheMissesCause(),
	}
}
