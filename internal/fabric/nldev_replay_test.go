//go:build linux

package fabric

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// replay answers as the kernel of the recorded dumps did.
type replay struct {
	t *testing.T
	// refuse has the error of a device whose resources cannot be dumped.
	refuse map[uint32]error
	// deadline says that one was set since the last request.
	deadline bool
	closed   bool
}

func (r *replay) SetDeadline(at time.Time) error {
	r.deadline = at.After(time.Now())
	return nil
}

func (r *replay) Close() error {
	r.closed = true
	return nil
}

func (r *replay) Execute(request netlink.Message) ([]netlink.Message, error) {
	require.True(r.t, r.deadline, "a dump may take forever")
	r.deadline = false
	assert.Equal(r.t, netlink.Request|netlink.Dump, request.Header.Flags)
	command := uint16(request.Header.Type) & 0x3ff
	assert.EqualValues(r.t, nldevClient, request.Header.Type>>10)
	if command == nldevGet {
		return messagesOf(r.t, "device-*"), nil
	}
	decoder, err := netlink.NewAttributeDecoder(request.Data)
	require.NoError(r.t, err)
	require.True(r.t, decoder.Next(), "the kernel dumps one device at a time")
	require.EqualValues(r.t, nldevDeviceIndex, decoder.Type())
	device := decoder.Uint32()
	if err := r.refuse[device]; err != nil {
		return nil, err
	}
	kind := map[uint16]string{nldevQPGet: "qp", nldevCQGet: "cq"}[command]
	return messagesOf(r.t, fmt.Sprintf("%s-%d-*", kind, device)), nil
}

func messagesOf(t *testing.T, pattern string) []netlink.Message {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "nldev", pattern+".bin"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var messages []netlink.Message
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		messages = append(messages, netlink.Message{Data: content})
	}
	return messages
}

// All devices are asked, one by one. One that was unplugged is left out; of one
// that fails it is said, and the others are there.
func TestResourcesOfAllDevices(t *testing.T) {
	whole := &Resources{conn: &replay{t: t}}
	all, err := whole.QPs()
	require.NoError(t, err)
	cqs, err := whole.CQs()
	require.NoError(t, err)
	assert.Len(t, all, len(printedBy(t, "qp.txt")))
	assert.Len(t, cqs, len(printedBy(t, "cq.txt")))
	of := func(device string) (found []QPResource) {
		for _, q := range all {
			if q.Device == device {
				found = append(found, q)
			}
		}
		return found
	}
	require.NotEmpty(t, of("rxa"))
	require.NotEmpty(t, of("rxb"))

	unplugged := &Resources{conn: &replay{t: t, refuse: map[uint32]error{0: unix.ENODEV}}}
	got, err := unplugged.QPs()
	require.NoError(t, err)
	assert.Equal(t, of("rxb"), got)

	broken := &Resources{conn: &replay{t: t, refuse: map[uint32]error{1: unix.EIO}}}
	got, err = broken.QPs()
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorContains(t, err, "rxb")
	assert.Equal(t, of("rxa"), got)

	connection := &replay{t: t}
	require.NoError(t, (&Resources{conn: connection}).Close())
	assert.True(t, connection.closed)
}
