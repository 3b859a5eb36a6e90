package diagnose

import "github.com/rdmaradar/rdmaradar/internal/verbs"

// Excludes reports whether a request was slow for another reason than this, whatever
// was the cause of others that were slow with it: the cause is that the poller was
// off its CPU, and while the request was under way it hardly was. For most of its
// time the request must have been the oldest of its queue: one that waited behind
// others is late for the reason that those are.
func (c *Cause) Excludes(r *verbs.Completion) bool {
	s := &r.PollerScheduling
	return c.OffCPU && r.Status == verbs.StatusSuccess && r.HasPollerScheduling && s.Whole &&
		ratio(s.OffCPU(), r.Excess()) < aPart &&
		ratio(r.Stages[verbs.StageDevice]+r.Stages[verbs.StageCompletion], r.Duration()) >= mostly
}
