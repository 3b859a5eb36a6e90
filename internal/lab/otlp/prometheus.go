package otlp

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// promLine is a sample of the Prometheus text format.
var promLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)`)

// promLabel is one label of it.
var promLabel = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)

// ReadPrometheus reads the collector's own telemetry in the Prometheus text
// format. Metric carries the sample's name.
func ReadPrometheus(r io.Reader) (Metrics, error) {
	var all Metrics
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		m := promLine.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("not a sample: %q", line)
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("value of %q: %w", line, err)
		}
		p := Point{Metric: m[1], Value: value, Attributes: map[string]string{}}
		for _, label := range promLabel.FindAllStringSubmatch(m[2], -1) {
			p.Attributes[label[1]] = label[2]
		}
		all = append(all, p)
	}
	return all, scanner.Err()
}
