package fabric

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dumped returns the messages of a recorded dump.
func dumped(t testing.TB, kind string) [][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "nldev", kind+"-*.bin"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var messages [][]byte
	for _, file := range files {
		message, err := os.ReadFile(file)
		require.NoError(t, err)
		messages = append(messages, message)
	}
	return messages
}

// printedBy returns what the rdma tool printed of a dump, as the words and
// values of each line.
func printedBy(t *testing.T, file string, keys ...string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "nldev", file))
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		var found []string
		for i := 0; i+1 < len(words); i++ {
			if slices.Contains(keys, words[i]) {
				found = append(found, words[i]+" "+words[i+1])
			}
		}
		lines = append(lines, strings.Join(found, " "))
	}
	return lines
}

// words are the words and values of one resource, as the rdma tool prints them.
type words []string

func (w *words) add(key string, value any) { *w = append(*w, fmt.Sprintf("%s %v", key, value)) }

func addIf[T any](w *words, key string, value *T) {
	if value != nil {
		w.add(key, *value)
	}
}

func TestParseQPs(t *testing.T) {
	var got []string
	for _, message := range dumped(t, "qp") {
		qps, err := parseQPs(message)
		require.NoError(t, err)
		for _, q := range qps {
			require.NotNil(t, q.Port)
			var w words
			w.add("link", fmt.Sprintf("%s/%d", q.Device, *q.Port))
			w.add("lqpn", q.Number)
			addIf(&w, "rqpn", q.RemoteNumber)
			w.add("type", strings.ToUpper(q.Type))
			w.add("state", q.State)
			if q.Owner.Kernel != "" {
				w.add("comm", "["+q.Owner.Kernel+"]")
			} else {
				w.add("pid", q.Owner.PID)
				w.add("comm", "ib_send_bw")
			}
			got = append(got, strings.Join(w, " "))
		}
	}
	assert.Equal(t, printedBy(t, "qp.txt", "link", "lqpn", "rqpn", "type", "state", "pid", "comm"), got)
}

func TestParseCQs(t *testing.T) {
	var got []string
	for _, message := range dumped(t, "cq") {
		cqs, err := parseCQs(message)
		require.NoError(t, err)
		for _, c := range cqs {
			var w words
			w.add("dev", c.Device)
			addIf(&w, "cqn", c.Number)
			w.add("cqe", c.Entries)
			addIf(&w, "users", c.Users)
			if c.Owner.Kernel != "" {
				w.add("poll-ctx", c.PollContext)
				w.add("comm", "["+c.Owner.Kernel+"]")
			} else {
				require.Empty(t, c.PollContext, "the kernel does not poll it")
				w.add("pid", c.Owner.PID)
				w.add("comm", "ib_send_bw")
			}
			got = append(got, strings.Join(w, " "))
		}
	}
	assert.Equal(t, printedBy(t, "cq.txt", "dev", "cqn", "cqe", "users", "poll-ctx", "pid", "comm"), got)
}

func TestParseDevices(t *testing.T) {
	names := map[uint32]string{}
	for _, message := range dumped(t, "device") {
		device, err := parseDevice(message)
		require.NoError(t, err)
		names[device.index] = device.name
	}
	assert.Equal(t, map[uint32]string{0: "rxa", 1: "rxb"}, names)
}

// What an attribute does not say is absent.
func TestParseQPsKnowsLittle(t *testing.T) {
	encoder := netlink.NewAttributeEncoder()
	encoder.String(nldevDeviceName, "mlx5_0")
	encoder.Nested(nldevQPs, func(table *netlink.AttributeEncoder) error {
		table.Nested(nldevQPEntry, func(entry *netlink.AttributeEncoder) error {
			entry.Uint32(nldevQPNumber, 7)
			entry.Uint8(nldevQPState, 200)
			return nil
		})
		table.Uint32(nldevQPEntry+100, 1)
		return nil
	})
	message, err := encoder.Encode()
	require.NoError(t, err)
	qps, err := parseQPs(message)
	require.NoError(t, err)
	assert.Equal(t, []QPResource{{Device: "mlx5_0", Number: 7, State: "UNKNOWN_200"}}, qps)
}

// A region of a process and one of the kernel, in a message as the kernel composes
// it.
func TestParseMRs(t *testing.T) {
	encoder := netlink.NewAttributeEncoder()
	encoder.Uint32(nldevDeviceIndex, 1)
	encoder.String(nldevDeviceName, "mlx5_0")
	encoder.Nested(nldevMRs, func(table *netlink.AttributeEncoder) error {
		table.Nested(nldevMREntry, func(entry *netlink.AttributeEncoder) error {
			entry.Uint64(nldevMRLength, 1<<40)
			entry.Uint32(nldevPID, 42)
			return nil
		})
		table.Nested(nldevMREntry, func(entry *netlink.AttributeEncoder) error {
			entry.String(nldevKernelName, "nvme_rdma")
			return nil
		})
		return nil
	})
	message, err := encoder.Encode()
	require.NoError(t, err)
	mrs, err := parseMRs(message)
	require.NoError(t, err)
	assert.Equal(t, []MRResource{
		{Device: "mlx5_0", Owner: Owner{PID: 42}, Bytes: 1 << 40},
		{Device: "mlx5_0", Owner: Owner{Kernel: "nvme_rdma"}},
	}, mrs)
	_, err = parseMRs(message[:len(message)-1])
	assert.ErrorContains(t, err, "memory regions")
}

func TestParseQPsCutShort(t *testing.T) {
	message := dumped(t, "qp")[0]
	for length := 1; length < len(message); length += 7 {
		qps, err := parseQPs(message[:length])
		if err != nil {
			assert.Nil(t, qps)
			assert.ErrorContains(t, err, "queue pairs")
		}
	}
	_, err := parseQPs(message[:len(message)-1])
	require.Error(t, err)
}

func FuzzParseResources(f *testing.F) {
	for _, kind := range []string{"device", "qp", "cq"} {
		for _, message := range dumped(f, kind) {
			f.Add(message)
		}
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		if qps, err := parseQPs(message); err != nil {
			require.Nil(t, qps)
		}
		if cqs, err := parseCQs(message); err != nil {
			require.Nil(t, cqs)
		}
		if mrs, err := parseMRs(message); err != nil {
			require.Nil(t, mrs)
		}
		_, _ = parseDevice(message)
	})
}
