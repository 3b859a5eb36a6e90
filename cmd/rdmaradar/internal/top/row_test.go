package top

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"

	"github.com/rdmaradar/rdmaradar/internal/radar"
)

func numbers(rows []Row) (qps []uint32) {
	for i := range rows {
		qps = append(qps, rows[i].QP)
	}
	return qps
}

func TestFilter(t *testing.T) {
	rows := Rows(sample())
	for text, want := range map[string][]uint32{
		"":              {0x18f2, 0x18f3, 0x44, 0x45},
		"  ":            {0x18f2, 0x18f3, 0x44, 0x45},
		"mlx5_3":        {0x18f2, 0x18f3},
		"MLX5_3 0x18f2": {0x18f2},
		"rank:7":        {0x18f2, 0x18f3},
		"pid:4242":      {0x18f2, 0x18f3},
		"job:81 fe80":   {0x18f3},
		"numa":          {0x18f2},
		"preempted":     {0x18f2},
		"nvme":          {0x44},
		"unsynced":      {0x45},
		"数":             {0x45},
		"nothing":       nil,
	} {
		assert.Equal(t, want, numbers(Filter(rows, text)), text)
	}
}

// A word with a key is compared whole, here and on the radar page.
func TestFilterComparesKeysWhole(t *testing.T) {
	var rows []Row
	for i, rank := range []int{7, 70, 77} {
		rows = append(rows, Row{
			QP: uint32(i + 1), Rank: &rank, PID: uint32(410 + 3690*i), Job: []string{"81", "815", "4281"}[i], Device: []string{"mlx5_1", "mlx5_10", "mlx5_11"}[i],
			Peer: "fe80::7",
		})
	}
	rows = append(rows, Row{QP: 4, Kernel: true, Process: "nvme_rdma", Device: "mlx5_1"})
	for text, want := range map[string][]uint32{
		"rank:7":                {1},
		"RANK:70":               {2},
		"mlx5_1 rank:77":        {3},
		"rank:":                 {1, 2, 3},
		"rank:77 pid:7790":      {3},
		"pid:410":               {1},
		"pid:41":                nil,
		"job:81":                {1},
		"device:mlx5_1":         {1, 4},
		"mlx5_1":                {1, 2, 3, 4},
		"fe80::":                {1, 2, 3},
		"device:mlx5_1 rank:70": nil,
	} {
		assert.Equal(t, want, numbers(Filter(rows, text)), text)
	}
}

func TestOrders(t *testing.T) {
	first := map[string]uint32{
		"trouble": 0x18f3, "slow": 0x18f2, "p50": 0x44, "p99": 0x18f2, "p99.9": 0x18f2, "worst": 0x18f2, "depth": 0x18f2, "oldest": 0x18f3,
		"rate": 0x18f2, "sent": 0x18f2, "pid": 0x44, "process": 0x45, "device": 0x45,
	}
	keys := map[string]bool{}
	for _, o := range orders() {
		rows := Rows(sample())
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		sortRows(rows, o, false)
		assert.Equal(t, first[o.name], rows[0].QP, o.name)
		sortRows(rows, o, true)
		assert.NotEqual(t, first[o.name], rows[0].QP, o.name)
		assert.False(t, keys[o.key], "the key %s is of two orders", o.key)
		keys[o.key] = true
	}
	assert.Len(t, keys, len(first))
	for _, c := range columns() {
		if c.order != "" {
			_, err := orderNamed(c.order)
			assert.NoError(t, err, c.title)
		}
	}
}

// A view of another version, or of who is no collector, may contradict itself.
func TestColumnsOfDifferentLengths(t *testing.T) {
	rows := Rows(&radar.View{Queues: radar.QueueTable{
		QP: []uint32{1, 2, 3}, Process: []int{-1, 7, 1 << 40}, Device: []int{5}, Node: []int{2}, Troubles: map[int]radar.Trouble{9: {}, -1: {}},
	}})
	assert.Equal(t, []uint32{1, 2, 3}, numbers(rows))
	assert.Equal(t, Row{QP: 2}, rows[1])
}

// Whatever the width is, no line is wider, and what matters stays longest.
func TestFit(t *testing.T) {
	rows := Rows(sample())
	for width := 1; width < 220; width++ {
		all := fit(rows, width)
		for i := range rows {
			text := line(all, func(c *column) string { return c.say(&rows[i]) }, width)
			assert.LessOrEqual(t, ansi.StringWidth(text), width)
		}
	}
	titles := func(width int) (names []string) {
		for _, c := range fit(rows, width) {
			names = append(names, c.title)
		}
		return names
	}
	assert.Len(t, titles(200), len(columns()))
	for _, title := range []string{"PID", "PROCESS", "DEVICE", "QP", "DEPTH", "P99", "WORST", "SLOW", "WHY"} {
		assert.True(t, slices.Contains(titles(80), title), title)
	}
	assert.NotContains(t, titles(80), "PEER")
}

func TestNumbers(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 12.3: "12", 999: "999", 1000: "1.0k", 40_000: "40.0k", 123_456: "123k", 4.1e6: "4.1M", 5e12: "5000G"} {
		assert.Equal(t, want, count(n))
	}
	for bytes, want := range map[float64]string{0: "-", 1: "8b/s", 125e6: "1.0Gb/s", 39e9: "312Gb/s", 1e15: "8000Tb/s"} {
		assert.Equal(t, want, bits(bytes))
	}
}
