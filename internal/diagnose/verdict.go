package diagnose

import (
	"slices"
	"strings"
)

// Confidence says how sure a verdict is.
type Confidence uint8

// The confidences, in their order.
const (
	// None: it is not this.
	None Confidence = iota
	// Possible: something speaks for it, and other causes would look the same.
	Possible
	// Likely: what is known fits it and, as far as is known, nothing else.
	Likely
	// Certain: what happened was measured itself, and it accounts for the time.
	Certain
)

// String returns the value of rdma.verdict.confidence, "" for None.
func (c Confidence) String() string {
	switch c {
	case Possible:
		return "possible"
	case Likely:
		return "likely"
	case Certain:
		return "certain"
	default:
		return ""
	}
}

// Unknown is the name of the cause of what no cause explains.
const Unknown = "unknown"

// Evidence is one fact that speaks for a cause or against it.
type Evidence struct {
	// Name is short and the same each time, for machines: a counter or a measure.
	Name string
	// Text is a clause for people, with its numbers, without a full stop.
	Text string
}

// Judgement is what one cause says of a burst.
type Judgement struct {
	Confidence Confidence
	// Explains is which part of the burst's time the cause accounts for, from 0 to
	// 1. 0 where that cannot be told.
	Explains     float64
	For, Against []Evidence
	// Missing is what would have told, and was not known: clauses for people.
	Missing []string
	// Remedy is one sentence on what to do about this burst, "" for that of the
	// cause.
	Remedy string
}

// Verdict is why a burst was slow.
type Verdict struct {
	// Cause is the name of the cause, or Unknown.
	Cause      string
	Confidence Confidence
	Explains   float64
	// For and Against are the evidence, Missing what would tell more.
	For, Against []Evidence
	Missing      []string
	// Remedy is a sentence on what to do, and one on threads that are far from the NIC;
	// "" where there is nothing to say.
	Remedy string
	// Others are the causes that something speaks for as well, the best first.
	Others []string
}

// Judge weighs what the causes say of a burst.
//
// The most confident judgement wins, of several the one that accounts for more of
// the time, of equal ones the one that stands first in the table; but one that is as
// good and brings the winner about stands before it. When another cause, which is no
// consequence of the winner, is as confident, then neither is more than possible: one
// of the two would be wrong.
func Judge(b *Burst, causes []Cause) Verdict {
	ranked := judgeAll(b, causes)
	if len(ranked) == 0 {
		return Verdict{Cause: Unknown, Missing: missingOf(b, causes), Remedy: b.placementRemark()}
	}
	best := foremost(ranked)
	verdict := Verdict{
		Cause: best.cause.Name, Confidence: best.Confidence, Explains: best.Explains,
		For: best.For, Against: best.Against, Missing: best.Missing, Remedy: best.Remedy,
	}
	if verdict.Remedy == "" {
		verdict.Remedy = best.cause.Remedy
	}
	if remark := b.placementRemark(); remark != "" && best.cause.Name != numaMisplacement {
		verdict.Remedy = strings.TrimSuffix(verdict.Remedy, ".") + ". " + remark
	}
	for _, other := range ranked {
		if other.cause == best.cause || best.bringsAbout(other) {
			continue
		}
		verdict.Others = append(verdict.Others, other.cause.Name)
		if other.rivals(best) {
			verdict.Confidence = Possible
		}
	}
	return verdict
}

type judged struct {
	Judgement
	cause *Cause
}

// clearlyMore is by how much of the time a cause has to account for more than
// another one that is as confident, so that the other does not put it in doubt.
const clearlyMore = 0.3

// rivals reports whether it is as good an explanation as the best one.
func (j judged) rivals(best judged) bool {
	return j.Confidence >= best.Confidence && j.Explains > best.Explains-clearlyMore
}

// bringsAbout reports whether the other cause is a consequence of this one.
func (j judged) bringsAbout(other judged) bool {
	return slices.Contains(j.cause.Consequences, other.cause.Name)
}

// foremost is the first that is as good as the first of all and that none of those as
// good brings about. Two that bring each other about stand in their order.
func foremost(ranked []judged) judged {
	follows := func(one judged) bool {
		return slices.ContainsFunc(ranked, func(other judged) bool {
			return other.rivals(ranked[0]) && other.bringsAbout(one) && !one.bringsAbout(other)
		})
	}
	for _, one := range ranked {
		if one.rivals(ranked[0]) && !follows(one) {
			return one
		}
	}
	return ranked[0]
}

func judgeAll(b *Burst, causes []Cause) []judged {
	var all []judged
	for i := range causes {
		judgement := causes[i].judge(b)
		if judgement.Confidence != None {
			all = append(all, judged{judgement, &causes[i]})
		}
	}
	slices.SortStableFunc(all, func(x, y judged) int {
		if x.Confidence != y.Confidence {
			return int(y.Confidence) - int(x.Confidence)
		}
		switch {
		case x.Explains > y.Explains:
			return -1
		case x.Explains < y.Explains:
			return 1
		default:
			return 0
		}
	})
	return all
}

// missingOf is what causes would have had to know, each said once. Where they knew all
// that they need, it is what cannot be seen from this host.
func missingOf(b *Burst, causes []Cause) []string {
	var missing []string
	for i := range causes {
		for _, m := range causes[i].judge(b).Missing {
			if !slices.Contains(missing, m) {
				missing = append(missing, m)
			}
		}
	}
	if len(missing) == 0 {
		missing = append(missing, missingElsewhere)
	}
	return missing
}
