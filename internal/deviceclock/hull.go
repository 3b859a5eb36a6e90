package deviceclock

import (
	"cmp"
	"slices"
)

// point is a stamp, in ticks, and when the host had seen it, in nanoseconds, both
// from an origin of the clock's own: small enough to be exact as float64.
type point struct{ x, y float64 }

// line is y = a + b*x.
type line struct{ a, b float64 }

func (l line) at(x float64) float64 { return l.a + l.b*x }

// lowerHull is the lower convex hull of points, from left to right.
func lowerHull(points []point) []point {
	slices.SortFunc(points, func(p, q point) int { return cmp.Or(cmp.Compare(p.x, q.x), cmp.Compare(p.y, q.y)) })
	var hull []point
	for _, p := range points {
		if n := len(hull); n > 0 && hull[n-1].x == p.x {
			continue
		}
		for len(hull) >= 2 && !turnsUp(hull[len(hull)-2], hull[len(hull)-1], p) {
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, p)
	}
	return hull
}

func turnsUp(a, b, c point) bool { return (b.x-a.x)*(c.y-a.y) > (b.y-a.y)*(c.x-a.x) }

// envelope is the line below all points that comes closest to them: delays only
// ever make the host see a stamp later. It leads along the edge of the hull below
// the mean (Moon, Skelly and Towsley, "Estimation and Removal of Clock Skew from
// Network Delay Measurements", INFOCOM 1999). It is false for fewer than two
// different stamps.
func envelope(points []point) (line, bool) {
	hull := lowerHull(slices.Clone(points))
	if len(hull) < 2 {
		return line{}, false
	}
	mean := 0.0
	for _, p := range points {
		mean += p.x / float64(len(points))
	}
	edge := 1
	for edge < len(hull)-1 && hull[edge].x < mean {
		edge++
	}
	p, q := hull[edge-1], hull[edge]
	b := (q.y - p.y) / (q.x - p.x)
	return line{p.y - b*p.x, b}, true
}
