package diagnose

// hostCauses are those in the host's threads and in how they use the queues: the
// more specific first.
func hostCauses() []Cause {
	return []Cause{
		pollerStoppedCause(),
		pollerThrottledCause(),
		pollerPreemptedCause(),
		postStalledCause(),
		memoryRegistrationCause(),
		completionQueueStarvedCause(),
		pollerAsleepCause(),
		pollerIdleStateCause(),
		interruptLateCause(),
		pollerInterruptedCause(),
		pollerBusyCause(),
		sendQueueFullCause(),
		sendQueueBacklogCause(),
		applicationLateCause(),
		peerLateCause(),
		hangCause(),
	}
}
