package top

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

// Options say which rows there are and in which order.
type Options struct {
	// Sort is one of Orders, Reverse turns it round, Filter is as in Filter.
	Sort    string
	Reverse bool
	Filter  string
}

// Check says what is wrong with them.
func (o Options) Check() error {
	_, err := orderNamed(o.Sort)
	return err
}

// Document is what a node looks like at one moment, for scripts. Its members are those
// of radar.View, with an object for each queue pair.
type Document struct {
	At        int64            `json:"at"`
	Node      radar.Node       `json:"node"`
	Tracing   radar.Tracing    `json:"tracing"`
	Now       radar.Pace       `json:"now"`
	Incidents []radar.Incident `json:"incidents"`
	// OtherIncidents counts the open ones that the filter leaves out.
	OtherIncidents int   `json:"other_incidents,omitempty"`
	Queues         []Row `json:"queues"`
}

// WriteJSON writes a view as a Document.
func WriteJSON(to io.Writer, v *radar.View, o Options) error {
	s, err := o.scope(v)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(Document{
		At: v.At, Node: v.Node, Tracing: v.Tracing, Now: v.Now, Incidents: s.incidents, OtherIncidents: s.others, Queues: s.rows,
	})
}

// WriteTable writes a view as a table, with times of day in a zone.
func WriteTable(to io.Writer, v *radar.View, o Options, zone *time.Location) error {
	s, err := o.scope(v)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, summary(v, zone))
	for _, said := range s.headline(zone) {
		fmt.Fprintln(out, said.text)
	}
	if text := s.leftOut(); text != "" {
		fmt.Fprintln(out, text)
	}
	if len(s.rows) > 0 {
		all := fit(s.rows, 0)
		fmt.Fprintf(out, "\n%s\n", line(all, func(c *column) string { return c.title }, 0))
		for i := range s.rows {
			fmt.Fprintln(out, line(all, func(c *column) string { return c.say(&s.rows[i]) }, 0))
		}
	}
	return out.Flush()
}

// scope is what is asked for, with its rows in order.
func (o Options) scope(v *radar.View) (*scope, error) {
	by, err := orderNamed(o.Sort)
	if err != nil {
		return nil, err
	}
	s := scopeOf(v, o.Filter)
	sortRows(s.rows, orders()[by], o.Reverse)
	return s, nil
}

// Blind is why a view shows nothing of a node, nil when it does.
func Blind(v *radar.View) error {
	switch v.Tracing.Phase {
	case radar.Absent, radar.Starting, radar.Failed:
		return errors.New(scopeOf(v, "").headline(time.UTC)[0].text)
	default:
		return nil
	}
}
