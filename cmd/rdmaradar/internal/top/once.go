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
	Queues    []Row            `json:"queues"`
}

// WriteJSON writes a view as a Document.
func WriteJSON(to io.Writer, v *radar.View, o Options) error {
	rows, err := o.rows(v)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(Document{At: v.At, Node: v.Node, Tracing: v.Tracing, Now: v.Now, Incidents: v.Incidents, Queues: rows})
}

// WriteTable writes a view as a table, with times of day in a zone.
func WriteTable(to io.Writer, v *radar.View, o Options, zone *time.Location) error {
	rows, err := o.rows(v)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	fmt.Fprintln(out, summary(v, zone))
	for _, s := range headline(v, zone) {
		fmt.Fprintln(out, s.text)
	}
	if len(rows) > 0 {
		all := fit(rows, 0)
		fmt.Fprintf(out, "\n%s\n", line(all, func(c *column) string { return c.title }, 0))
		for i := range rows {
			fmt.Fprintln(out, line(all, func(c *column) string { return c.say(&rows[i]) }, 0))
		}
	}
	return out.Flush()
}

// rows are those that are asked for.
func (o Options) rows(v *radar.View) ([]Row, error) {
	by, err := orderNamed(o.Sort)
	if err != nil {
		return nil, err
	}
	rows := Filter(Rows(v), o.Filter)
	sortRows(rows, orders()[by], o.Reverse)
	return rows, nil
}

// Blind is why a view shows nothing of a node, nil when it does.
func Blind(v *radar.View) error {
	switch v.Tracing.Phase {
	case radar.Absent, radar.Starting, radar.Failed:
		return errors.New(headline(v, time.UTC)[0].text)
	default:
		return nil
	}
}
