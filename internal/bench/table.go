package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// printTable prints what was measured, for people.
func printTable(out io.Writer, r *result) {
	m := &r.Machine
	fmt.Fprintf(out, "\n%s, %d processors%s, Linux %s; load average %.2f before, %.2f after\n",
		m.Processor, m.CPUs, virtualText(m.Virtual), m.Kernel, m.LoadAtStart, m.LoadAtEnd)
	printModes(out, r)
	printRatios(out, r)
	printPrograms(out, r)
	printProfile(out, r)
	printAgent(out, r)
	printPage(out, r)
	printQueues(out, r)
	for _, note := range r.Notes {
		fmt.Fprintf(out, "NOTE: %s\n", note)
	}
}

func virtualText(virtual bool) string {
	if virtual {
		return " (virtual machine)"
	}
	return ""
}

func newTable(out io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
}

func printModes(out io.Writer, r *result) {
	fmt.Fprintf(out, "\nTime of a call in ns, medians of %d rounds; polls by the number of empty ones for each completion\n", r.Rounds)
	table := newTable(out)
	defer table.Flush()
	fmt.Fprint(table, "mode\t")
	for _, n := range emptyPolls {
		fmt.Fprintf(table, "poll %s:1\t", n)
	}
	fmt.Fprint(table, "post\tattach ms\tdetach ms\t\n")
	for _, mode := range modeNames {
		fmt.Fprintf(table, "%s\t", mode)
		for _, n := range emptyPolls {
			fmt.Fprintf(table, "%s\t", number(r.PollNs[mode], n, 1))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t\n", number(r.PostNs, mode, 1), number(r.AttachMs, mode, 0), number(r.DetachMs, mode, 0))
	}
}

// number formats a value that may be missing.
func number(values map[string]float64, key string, digits int) string {
	value, ok := values[key]
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}

// ratio is one comparison of two modes.
type ratio struct {
	text  string
	value float64
}

// ratios are the comparisons that matter to an observed program; those with a
// missing mode are left out.
func ratios(r *result) []ratio {
	var all []ratio
	add := func(text string, over, under float64) {
		if over > 0 && under > 0 {
			all = append(all, ratio{text, over / under})
		}
	}
	poll := func(mode, n string) float64 { return r.PollNs[mode][n] }
	added := func(mode string) float64 { return poll(mode, "1000") - poll(modeUntraced, "1000") }
	add("a poll at 1000:1, ours / untraced", poll(modeOurs, "1000"), poll(modeUntraced, "1000"))
	add("added to a poll at 1000:1, entry_return / ours", added(modeEntryReturn), added(modeOurs))
	add("added to a poll at 1000:1, bpftrace / ours", added(modeBpftrace), added(modeOurs))
	add("a completion (0:1), ours / bare", poll(modeOurs, "0"), poll(modeBare, "0"))
	add("a post, ours / bare", r.PostNs[modeOurs], r.PostNs[modeBare])
	return all
}

func printRatios(out io.Writer, r *result) {
	table := newTable(out)
	defer table.Flush()
	fmt.Fprintln(out)
	for _, one := range ratios(r) {
		fmt.Fprintf(table, "%s\t%.2f\t\n", one.text, one.value)
	}
}

func printPrograms(out io.Writer, r *result) {
	fmt.Fprintf(out, "\nBPF programs of the tracer, by the kernel's statistics, over all polls and posts of one round\n")
	table := newTable(out)
	defer table.Flush()
	fmt.Fprint(table, "program\truns\tns a run\t\n")
	for _, p := range r.Programs {
		fmt.Fprintf(table, "%s\t%d\t%.1f\t\n", p.Name, p.RunCount, p.NsPerRun)
	}
}

func printProfile(out io.Writer, r *result) {
	if len(r.Profile) == 0 {
		return
	}
	fmt.Fprintf(out, "\nWhere the kernel spends the time of a post and a completion that are observed\n")
	table := newTable(out)
	defer table.Flush()
	for _, p := range r.Profile {
		fmt.Fprintf(table, "%s\t%.1f %%\t\n", p.Part, 100*p.Share)
	}
}

func printAgent(out io.Writer, r *result) {
	fmt.Fprintf(out, "\nThe agent\n")
	table := newTable(out)
	defer table.Flush()
	fmt.Fprint(table, "asked/s\treached/s\tslow\tslow, measured\tCPU cores\tRSS MiB\tmaps MiB\t\n")
	for _, a := range r.Agent {
		asked := "most"
		if a.AskedPerSecond > 0 {
			asked = strconv.Itoa(a.AskedPerSecond)
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.1f %%\t%.2f %%\t%.4f\t%.1f\t%.1f\t\n", asked, a.CompletionsPerSecond,
			100*a.SlowShare, 100*a.SlowMeasured, a.CPUCores, mebibytes(a.RSSBytes), mebibytes(a.MapBytes))
	}
}

func printPage(out io.Writer, r *result) {
	if len(r.Page) == 0 {
		return
	}
	fmt.Fprintf(out, "\nThe agent with %d queue pairs in use, by who looks at its radar page\n", r.Page[0].QPs)
	table := newTable(out)
	defer table.Flush()
	fmt.Fprint(table, "\tCPU cores\tmore\t\n")
	for _, p := range r.Page {
		fmt.Fprintf(table, "%s\t%.4f\t%+.4f\t\n", p.State, p.CPUCores, p.CPUCores-r.Page[0].CPUCores)
	}
}

func printQueues(out io.Writer, r *result) {
	fmt.Fprintf(out, "\nMemory of the maps against queue pairs, %.1f bytes for one more\n", growth(r.QPs))
	table := newTable(out)
	defer table.Flush()
	fmt.Fprint(table, "queue pairs\tfollowed\tnot followed\tmaps MiB\t\n")
	for _, q := range r.QPs {
		fmt.Fprintf(table, "%d\t%d\t%d\t%.2f\t\n", q.QPs, q.Tracked, q.Untracked, mebibytes(q.MapBytes))
	}
}

func mebibytes(bytes uint64) float64 { return float64(bytes) / (1 << 20) }
